"""Detects, without decoding, that the sound of an encode runs away from its picture, from how much of each has come.

An encoder holds back frames of the picture, and fragments come in steps. So what counts is how far the distance is from that of the
first seconds, and for how long. A picture that stands still, or a sound that is gone for a while, is no fault."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

_SETTLED: Final = 10.0
"""Seconds after which the usual distance is known."""
_MOVING: Final = 5.0
"""Seconds in which a track that goes on brings something."""
_APART: Final = 1.0
_LONG: Final = 30.0


@dataclass(slots=True)
class SyncWatch:
    """Compares a sound with the picture. `fault` is a sentence once it has run away for long, and stays."""

    fault: str = ""
    _ends: dict[bool, tuple[float, float]] = field(default_factory=dict)
    """For the picture (True) and the sound (False): where it ends in the time of the media, and when that came."""
    _began: float = 0.0
    _usual: float | None = None
    _since: float | None = None

    def take(self, *, picture: bool, end: float, now: float) -> None:
        """A fragment ends at `end`, and came at `now`, both in seconds."""
        self._ends[picture] = (end, now)
        if self.fault or len(self._ends) < 2:
            return
        (sound, heard), (shown, seen) = self._ends[False], self._ends[True]
        ahead = sound - shown
        if self._usual is None:
            self._began, self._usual = now, ahead
        elif now - self._began < _SETTLED:
            self._usual = min(self._usual, ahead, key=abs)
        elif abs(ahead - self._usual) <= _APART or now - min(heard, seen) > _MOVING:
            self._since = None
        elif self._since is None:
            self._since = now
        elif now - self._since >= _LONG:
            away = ahead - self._usual
            self.fault = f"The sound has run {abs(away):.1f} s {'ahead of' if away > 0 else 'behind'} the picture."

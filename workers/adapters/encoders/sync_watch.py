"""Detection, without decoding, of sound that drifts away from its picture, by how much of each has come.

An encoder delays frames of the picture, and fragments come in steps. So the watch measures how far, and for how long, the distance
differs from that of the first seconds. A still picture, or a sound that is missing for a while, is no fault.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

_SETTLED: Final = 10.0
"""Seconds after which the usual distance is known."""
_MOVING: Final = 5.0
"""Seconds within which a continuing track delivers something."""
_APART: Final = 1.0
_LONG: Final = 30.0


@dataclass(slots=True)
class SyncWatch:
    """Compares a sound with the picture. `fault` is a sentence once the sound has drifted for long, and then stays."""

    fault: str = ""
    _ends: dict[bool, tuple[float, float]] = field(default_factory=dict)
    """The end of the picture (True) and of the sound (False): in the time of the media, and by the clock when it came."""
    _began: float = 0.0
    _usual: float | None = None
    _since: float | None = None

    def take(self, *, picture: bool, end: float, now: float) -> None:
        """Record that a fragment ends at `end` and came at `now`, both in seconds."""
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

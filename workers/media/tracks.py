"""Compares each track of a source with itself: what was read, what was decoded and what was made of it.

While a step reads a source, ffmpeg lists the packets of each track (`Listing`) and the times of its decoded frames (`Formed`).
All times count from the first picture. Nothing is read or decoded for the comparison alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from domain.job.values import Severity
from workers.media.errors import Unusable
from workers.media.file import MediaFile, jumps
from workers.media.source import Source

LEAST: Final = 1.0
"""Seconds: a shorter hole is not told, and no reason to fail."""
_SHARE: Final = 0.02
"""Of its length that a track may lack of what its header says."""
_MOST_LINES: Final = 20
_EDGE: Final = 0.005
_NEW_PARAMETERS: Final = "New Extradata"


@dataclass(frozen=True)
class Track:
    """The frames or packets of a track. `times` rise; `last` is how long the last one lasts."""

    times: Sequence[float] = ()
    last: float = 0.0
    changes: bool = False
    """Whether its container says that its parameters change."""

    @property
    def begins(self) -> float:
        return self.times[0] if self.times else 0.0

    @property
    def ends(self) -> float:
        return self.times[-1] + self.last if self.times else 0.0

    def gaps(self, *, until: float | None = None) -> Iterator[tuple[float, float]]:
        """From when to when there is nothing for longer than `LEAST`, from time 0 on."""
        ends = [self.ends] if until is None or until <= self.ends else [self.ends, until]
        for before, after in pairwise([0.0, *(time for time in self.times if time > 0), *ends]):
            if after - before > LEAST:
                yield before, after

    def lacks(self, other: Track) -> list[tuple[float, float]]:
        """From when to when the other track has something for longer than `LEAST` and this one has nothing."""
        lost: list[tuple[float, float]] = []
        for begin, end in self.gaps(until=other.ends):
            first, after = bisect_left(other.times, begin + _EDGE), bisect_left(other.times, end - _EDGE)
            if first < after:
                there = other.times[after] if after < len(other.times) else other.ends
                if there - other.times[first] > LEAST:
                    lost.append((other.times[first], there))
        return lost


@dataclass(frozen=True)
class Listing:
    """Lists the packets of a track while ffmpeg reads it, in a file of the folder."""

    stream: int
    folder: Path

    def options(self) -> tuple[str, ...]:
        return ("-map", f"0:{self.stream}", "-c", "copy", "-f", "framecrc", self._name)

    def track(self) -> Track:
        """What was listed. The file is deleted."""
        file = self.folder / self._name
        times: list[float] = []
        last, scale, changes = 0.0, 1.0, False
        with file.open() as lines:
            for line in lines:
                if line.startswith("#"):
                    if line.startswith("#tb 0:"):
                        above, _, below = line.partition(":")[2].strip().partition("/")
                        scale = int(above) / int(below)
                    continue
                fields = line.split(",")
                last = int(fields[3]) * scale
                times.append(int(fields[2]) * scale)
                changes = changes or _NEW_PARAMETERS in line
        file.unlink()
        times.sort()
        return Track(times, last, changes)

    @property
    def _name(self) -> str:
        return f"packets-{self.stream}.txt"


def decoded(file: Path, *, rate: int = 0) -> Track:
    """What `Formed.times` lists in a file, which is deleted: times, and of sound, with its `rate`, numbers of samples too."""
    times: list[float] = []
    last = 0.0
    with file.open() as lines:
        for line in lines:
            time, _, samples = line.partition(" ")
            times.append(float(time))
            last = int(samples) / rate if rate and samples.strip() else 0.0
    file.unlink()
    times.sort()
    if not rate and len(times) > 1:
        last = min(times[-1] - times[-2], LEAST)
    return Track(times, last)


@dataclass
class Told:
    """Writes to the log what is odd about tracks, with times. The first lines of each kind are written, the rest is counted."""

    file: MediaFile
    severity: Severity = Severity.WARN
    _lines: int = field(default=0)

    def say(self, sentence: str) -> None:
        self._lines += 1
        if self._lines <= _MOST_LINES:
            self.file.programs.log(sentence, self.severity)
        elif self._lines == _MOST_LINES + 1:
            self.file.programs.log(f"There is more of this kind in {self.file.name}; it is left out here.", self.severity)


def tell(found: Source, *, picture: Track, sounds: Sequence[Track]) -> None:
    """What the packets of a source show: tracks that begin late, end early, have holes, or a clock that jumps. Fails for a file
    that is shorter than its headers say."""
    file = found.file
    check_whole(found, picture=picture, sounds=sounds)
    names = [name for name, _ in named(found, sounds)]
    told = Told(file)
    ends = max((one.ends for one in (picture, *sounds)), default=0.0)
    if not found.declared and found.lasts - ends > max(LEAST, found.lasts * _SHARE):
        for moment, jump in jumps(file):
            told.say(f"The clock of {file.name} jumps by {jump:.1f} s at {moment:.1f} s; the film goes on without a break.")
    earliest = min((one.begins for one in sounds if one.times), default=0.0)
    if earliest < -LEAST:
        told.say(f"The sound of {file.name} begins {-earliest:.1f} s before the first picture that can be shown.")
    for begin, end in picture.gaps():
        told.say(f"The picture of {file.name} has no frame from {begin:.1f} s to {end:.1f} s: it stands still.")
    if ends - picture.ends > LEAST:
        told.say(f"The picture of {file.name} ends at {picture.ends:.1f} s, {ends - picture.ends:.1f} s before the sound.")
    for name, sound in zip(names, sounds, strict=True):
        if not sound.times:
            told.say(f"{name} of {file.name} is empty.")
            continue
        for begin, end in sound.gaps():
            told.say(f"{name} of {file.name} has nothing from {begin:.1f} s to {end:.1f} s: it is silent.")
        if ends - sound.ends > LEAST:
            told.say(f"{name} of {file.name} ends at {sound.ends:.1f} s, {ends - sound.ends:.1f} s before the end.")


def tell_damage(found: Source, *, read: Track, shown: Track, name: str) -> None:
    """What was read of a track and cannot be decoded."""
    told = Told(found.file)
    for begin, end in shown.lacks(read):
        told.say(f"{name} of {found.file.name} is damaged from {begin:.1f} s to {end:.1f} s: it cannot be decoded.")


def check_made(found: Source, *, shown: Track, made: Track, name: str) -> None:
    """Fails where what was made lacks what was decoded."""
    if lost := made.lacks(shown):
        begin, end = lost[0]
        raise Unusable(f"{name} of {found.file.name} from {begin:.1f} s to {end:.1f} s is not in what was made of it.")


def check_whole(found: Source, *, picture: Track, sounds: Sequence[Track]) -> None:
    """Half a file has the headers of the whole one. A track is compared with its own header, where it has one; else all tracks with
    the length of the file, which may be that of a track that is not used."""
    if not found.declared:
        return
    tracks = [(found.picture.ends, picture), *((one.ends, track) for one, track in zip(found.sounds, sounds, strict=True))]
    for ends, track in tracks:
        if ends is not None and track.times and short(ends, track.ends):
            raise _not_whole(found, ends, track.ends)
    if any(ends is not None for ends, _ in tracks):
        return
    longest, said = max(track.ends for _, track in tracks), found.lasts - (found.file.start - found.file.began)
    if short(said, longest) and short(said, found.file.last_of(found.others, near=said)):
        raise _not_whole(found, said, longest)


def short(said: float, ends: float) -> bool:
    return said - ends > max(LEAST, said * _SHARE)


def named(found: Source, sounds: Sequence[Track]) -> list[tuple[str, Track]]:
    """What tracks of sound are called in the log."""
    alone = len(found.sounds) == 1
    return [("The sound" if alone else f"Sound track {number}", one) for number, one in enumerate(sounds, 1)]


def _not_whole(found: Source, said: float, ends: float) -> Unusable:
    return Unusable(f"{found.file.name} says that it lasts {said:.1f} s and ends after {ends:.1f} s: it is not whole.")

"""Compares each track of a source with itself: what was read, what was decoded and what was made from it.

While a step reads a source, ffmpeg lists the packets of each track (`Listing`) and the times of its decoded frames
(`FormedTracks`). All times count from the first picture. Nothing is read or decoded for the comparison alone.
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
from workers.media.file import ProbedFile, jumps
from workers.media.packet_list import listed_packets
from workers.media.source import SourceFile

LEAST: Final = 1.0
"""Seconds. A shorter hole is not logged and is no reason to fail."""
_SHARE: Final = 0.02
"""A track may lack this share of the length that its header gives."""
_MOST_LINES: Final = 20
_EDGE: Final = 0.005
_NEW_PARAMETERS: Final = "New Extradata"


@dataclass(frozen=True)
class MeasuredTrack:
    """The frames or packets of a track. `times` are ascending; `last` is the duration of the last one."""

    times: Sequence[float] = ()
    last: float = 0.0
    changes: bool = False
    """True if the container says that the parameters of the track change."""

    @property
    def begins(self) -> float:
        return self.times[0] if self.times else 0.0

    @property
    def ends(self) -> float:
        return self.times[-1] + self.last if self.times else 0.0

    def gaps(self, *, until: float | None = None) -> Iterator[tuple[float, float]]:
        """Yield the begin and the end of each hole that is longer than `LEAST`, from time 0 on."""
        ends = [self.ends] if until is None or until <= self.ends else [self.ends, until]
        for before, after in pairwise([0.0, *(time for time in self.times if time > 0), *ends]):
            if after - before > LEAST:
                yield before, after

    def lacks(self, other: MeasuredTrack) -> list[tuple[float, float]]:
        """Return the intervals longer than `LEAST` in which the other track has something and this one has nothing."""
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
    """Lists the packets of a track in a file of the folder while ffmpeg reads it."""

    stream: int
    folder: Path

    def options(self) -> tuple[str, ...]:
        return ("-map", f"0:{self.stream}", "-c", "copy", "-f", "framecrc", self._name)

    def track(self) -> MeasuredTrack:
        """Read the packets that ffmpeg listed, and delete the file."""
        file = self.folder / self._name
        times: list[float] = []
        last, changes = 0.0, False
        with file.open() as lines:
            for packet in listed_packets(lines):
                last = packet.lasts
                times.append(packet.at)
                changes = changes or _NEW_PARAMETERS in packet.remarks
        file.unlink()
        times.sort()
        return MeasuredTrack(times, last, changes)

    @property
    def _name(self) -> str:
        return f"packets-{self.stream}.txt"


def decoded(file: Path, *, rate: int = 0) -> MeasuredTrack:
    """Read the file that `FormedTracks.times` wrote, and delete it. It has times, and for sound with a `rate` also numbers of
    samples."""
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
    return MeasuredTrack(times, last)


@dataclass
class Notes:
    """Writes irregularities of tracks to the log, with times. Each instance writes its first lines and drops the rest."""

    file: ProbedFile
    severity: Severity = Severity.WARN
    _lines: int = field(default=0)

    def add(self, sentence: str) -> None:
        self._lines += 1
        if self._lines <= _MOST_LINES:
            self.file.programs.log(sentence, self.severity)
        elif self._lines == _MOST_LINES + 1:
            self.file.programs.log(f"There are more such entries for {self.file.name}; they are not logged.", self.severity)


def log_oddities(source: SourceFile, *, picture: MeasuredTrack, sounds: Sequence[MeasuredTrack]) -> None:
    """Log which tracks of a source begin late, end early or have holes, and where its clock jumps. Fail if a file is shorter than
    its headers say."""
    file = source.file
    check_whole(source, picture=picture, sounds=sounds)
    names = [name for name, _ in sound_names(source, sounds)]
    notes = Notes(file)
    ends = max((track.ends for track in (picture, *sounds)), default=0.0)
    if not source.declared and source.lasts - ends > max(LEAST, source.lasts * _SHARE):
        for moment, jump in jumps(file):
            notes.add(f"The clock of {file.name} jumps by {jump:.1f} s at {moment:.1f} s; the film continues without a break.")
    earliest = min((sound.begins for sound in sounds if sound.times), default=0.0)
    if earliest < -LEAST:
        notes.add(f"The sound of {file.name} begins {-earliest:.1f} s before the first picture that can be shown.")
    for begin, end in picture.gaps():
        notes.add(f"The picture of {file.name} has no frame from {begin:.1f} s to {end:.1f} s: it stands still.")
    if ends - picture.ends > LEAST:
        notes.add(f"The picture of {file.name} ends at {picture.ends:.1f} s, {ends - picture.ends:.1f} s before the sound.")
    for name, sound in zip(names, sounds, strict=True):
        if not sound.times:
            notes.add(f"{name} of {file.name} is empty.")
            continue
        for begin, end in sound.gaps():
            notes.add(f"{name} of {file.name} has nothing from {begin:.1f} s to {end:.1f} s: it is silent.")
        if ends - sound.ends > LEAST:
            notes.add(f"{name} of {file.name} ends at {sound.ends:.1f} s, {ends - sound.ends:.1f} s before the end.")


def log_damage(source: SourceFile, *, read: MeasuredTrack, shown: MeasuredTrack, name: str) -> None:
    """Log which parts of a track were read and cannot be decoded."""
    notes = Notes(source.file)
    for begin, end in shown.lacks(read):
        notes.add(f"{name} of {source.file.name} is damaged from {begin:.1f} s to {end:.1f} s: it cannot be decoded.")


def check_made(source: SourceFile, *, shown: MeasuredTrack, made: MeasuredTrack, name: str) -> None:
    """Fail if the output lacks what was decoded."""
    if lost := made.lacks(shown):
        begin, end = lost[0]
        raise Unusable(f"{name} of {source.file.name} from {begin:.1f} s to {end:.1f} s is missing in the result.")


def check_whole(source: SourceFile, *, picture: MeasuredTrack, sounds: Sequence[MeasuredTrack]) -> None:
    """Fail if the source is only the beginning of a file, whose headers are those of the whole file. A track is compared with its
    own header, if it has one; otherwise all tracks with the length of the file, which may be that of a track that is not used."""
    if not source.declared:
        return
    tracks = [(source.picture.ends, picture), *((sound.ends, track) for sound, track in zip(source.sounds, sounds, strict=True))]
    for ends, track in tracks:
        if ends is not None and track.times and short(ends, track.ends):
            raise _not_whole(source, ends, track.ends)
    if any(ends is not None for ends, _ in tracks):
        return
    longest, stated = max(track.ends for _, track in tracks), source.lasts - (source.file.origin - source.file.began)
    if short(stated, longest) and short(stated, source.file.last_of(source.others, near=stated)):
        raise _not_whole(source, stated, longest)


def short(stated: float, ends: float) -> bool:
    return stated - ends > max(LEAST, stated * _SHARE)


def sound_names(source: SourceFile, sounds: Sequence[MeasuredTrack]) -> list[tuple[str, MeasuredTrack]]:
    """Pair each sound track with its name in the log."""
    alone = len(source.sounds) == 1
    return [("The sound" if alone else f"Sound track {number}", track) for number, track in enumerate(sounds, 1)]


def _not_whole(source: SourceFile, stated: float, ends: float) -> Unusable:
    return Unusable(f"{source.file.name} says that it lasts {stated:.1f} s and ends after {ends:.1f} s: it is incomplete.")

"""Checks that a film has everything that was recorded, track by track, and logs where a track begins late, ends early or jumps.

A muxer that drops packets is silent about it, and so is an encoder that stopped sending sound. Packets are counted, not decoded.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from domain.job.values import Severity
from workers.job.context import StepContext, StepFailed
from workers.job.workflows.capture.changing_tracks import named
from workers.job.workflows.capture.film import HALF, Made
from workers.job.workflows.encode import LONGEST, STALLED
from workers.media.file import ProbedFile

_STILL: Final = 2.0
_SILENT: Final = 0.5
"""Seconds without a new picture, and without sound, after which a gap is logged."""
_LOST: Final = 0.02
_LEAST: Final = 1.0
_MOST_TOLD: Final = 20

Times = Mapping[str, Sequence[float]]
"""The times at which the packets of each track are presented, in order."""
Between = tuple[float, float]


def check_whole(
    context: StepContext[Any],
    files: Sequence[Path],
    *,
    made: Path,
    how: Made,
    gaps: Sequence[Between],
    shown: Callable[[float], str],
) -> None:
    """Compare the film with the recording. Raises `StepFailed` if a track is incomplete.

    `gaps` are known places where nothing was recorded. `shown` describes a place by its time in the recording.
    """
    cut = how.cut
    recorded: dict[str, Sequence[float]] = {}
    for number, file in enumerate(files):
        kinds = "va" if len(files) == 1 else "va"[number]
        file_times = _times(context, file, moved=how.origin)
        recorded |= {name: _within(times, first=cut.first, end=cut.end) for name, times in file_times.items() if name[0] in kinds}
    film = _times(context, made, moved=0.0 if how.copy_ts else cut.first)
    for name, times in recorded.items():
        if times:
            _compare(context, name, recorded=times, film=film.get(name, ()), copied=not how.accurate and name not in how.varying)
    for name, times in film.items():
        for begin, end in list(_missing(name, times, between=(cut.first, cut.end), gaps=gaps))[:_MOST_TOLD]:
            what = "has no new picture" if name == "v" else "is missing"
            context.log(f"{named(name)} {what} from {shown(begin)} to {shown(end)}.", Severity.WARN)


def _compare(context: StepContext[Any], name: str, *, recorded: Sequence[float], film: Sequence[float], copied: bool) -> None:
    """Compare a track of the film with the recording.

    A track that is encoded again may lack what cannot be decoded; a copied track must be complete.
    """
    had, has = _seconds(recorded), _seconds(film)
    if had - has <= max(_LEAST, had * _LOST):
        return
    reason = f"{named(name)} lasts {has:.1f} s in the film, of {had:.1f} s that were recorded"
    if copied or not film:
        raise StepFailed(f"{reason}: it is incomplete.")
    context.log(f"{reason}: the rest cannot be decoded.", Severity.WARN)


def _seconds(times: Sequence[float]) -> float:
    """Return the length of a track without its holes."""
    return sum(min(after - before, _SILENT) for before, after in pairwise(times))


def _missing(name: str, times: Sequence[float], *, between: Between, gaps: Sequence[Between]) -> Iterator[Between]:
    least = _STILL if name == "v" else _SILENT
    for before, after in pairwise((between[0], *times, between[1])):
        known_gap = sum(max(min(after, end) - max(before, begin), 0.0) for begin, end in gaps)
        if after - before - known_gap > least:
            yield before, after


def _within(times: Sequence[float], *, first: float, end: float) -> Sequence[float]:
    return times[bisect_left(times, first - HALF) : bisect_left(times, end - HALF)]


def _times(context: StepContext[Any], path: Path, *, moved: float) -> Times:
    """List the times of the tracks in a file of the workspace. The names of tracks are `v`, and `a0`, `a1` and so on."""
    packet_times: dict[int, array[float]] = defaultdict(lambda: array("d"))
    kinds: dict[int, str] = {}

    def read(line: str) -> bool:
        fields = line.strip().split(",")
        with suppress(ValueError, IndexError):
            if fields[0] == "packet":
                packet_times[int(fields[1])].append(float(fields[2]) + moved)
            elif fields[0] == "stream":
                kinds.setdefault(int(fields[1]), fields[2])
        return True

    show = ("-show_entries", "packet=stream_index,pts_time:stream=index,codec_type", "-of", "csv")
    media = ProbedFile(context, path, "the recording", {})
    context.run("ffprobe", "-v", "error", *show, *media.input(), seconds=LONGEST, stall=STALLED, on_line=read)
    names: dict[int, str] = {}
    for index in sorted(kinds):
        if kinds[index] == "video" and "v" not in names.values():
            names[index] = "v"
        elif kinds[index] == "audio":
            names[index] = f"a{sum(name[0] == 'a' for name in names.values())}"
    return {name: sorted(packet_times[index]) for index, name in names.items() if index in packet_times}

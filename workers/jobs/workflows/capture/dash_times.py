"""Durations, times and URL templates of DASH. ISO/IEC 23009-1."""

from __future__ import annotations

from re import Match
from re import compile as regex
from typing import Final

from domain.kernel.iso_8601 import moment_of, seconds_of
from workers.jobs.workflows.capture.segments import SourceFault
from workers.media.hls import Part

_IDENTIFIER: Final = regex(r"\$(?:(RepresentationID|Number|Time|Bandwidth)(?:%0(\d{1,2})d)?)?\$")
_RANGE: Final = regex(r"(\d{1,18})-(\d{1,18})")


def duration(text: str | None) -> float | None:
    """Seconds."""
    if text is None:
        return None
    found = seconds_of(text)
    if found is None:
        raise SourceFault("A duration of the MPD cannot be read.", final=True)
    return found


def moment(text: str | None) -> float | None:
    """Seconds since 1970."""
    if text is None:
        return None
    found = moment_of(text)
    if found is None:
        raise SourceFault("A time of the MPD cannot be read.", final=True)
    return found.timestamp()


def byte_range(text: str | None) -> Part | None:
    if text is None:
        return None
    found = _RANGE.fullmatch(text.strip())
    if found is None or int(found[2]) < int(found[1]):
        raise SourceFault("A byte range of the MPD cannot be read.", final=True)
    return Part(int(found[1]), int(found[2]) - int(found[1]) + 1)


def filled(template: str, *, representation: str, bandwidth: str, number: int = 0, time: int = 0) -> str:
    values = {"RepresentationID": representation, "Bandwidth": bandwidth, "Number": str(number), "Time": str(time)}

    def fill(found: Match[str]) -> str:
        return values[found[1]].zfill(int(found[2] or 0)) if found[1] else "$"

    made = _IDENTIFIER.sub(fill, template)
    if "$SubNumber" in template:
        raise SourceFault("The MPD counts parts of segments ($SubNumber$), which is not supported.", final=True)
    return made

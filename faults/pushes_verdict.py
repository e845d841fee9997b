"""What must be true of live publications whatever happened to those who push them, judged at the receiver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Final

from faults.findings import Verdict

OVERLAP: Final = 0.25
"""Seconds after the first media of a later session in which media of an earlier one were already on their way."""
AFTER_STOP: Final = 5.0
"""Seconds after an answered stop: the product promises three from its commit on, the rest is a busy machine."""
AFTER_EVENT: Final = 15.0
"""The same after the end of an Event, which a consumer reads first."""
SILENT: Final = 45.0
"""Seconds from the end of a fault to the next media."""


class Kind(StrEnum):
    TOGETHER = "two pushers"
    LATE = "after a stop"
    SILENT = "silent"
    UNEXPECTED = "other states"
    CHILDREN = "processes left"
    SECRETS = "secrets found"


@dataclass(frozen=True, slots=True)
class Taken:
    """Media that arrived: when, of which stream, of which session."""

    at: float
    stream: str
    session: int


@dataclass(frozen=True, slots=True)
class Stop:
    """`within`: seconds after which nothing may come any more, until `again`."""

    stream: str
    at: float
    within: float = AFTER_STOP
    again: float = inf


@dataclass(frozen=True, slots=True)
class Found:
    """`silent` is for each fault the longest silence of a stream after it; `states` what a publication was in at a time, and what
    it had to be; `secrets` where one was seen."""

    media: Sequence[Taken]
    stops: Sequence[Stop] = ()
    silent: Sequence[tuple[str, float]] = ()
    states: Sequence[tuple[str, str, str]] = ()
    children: Sequence[int] = ()
    secrets: Mapping[str, int] = field(default_factory=dict)

    @property
    def sessions(self) -> int:
        return len({(one.stream, one.session) for one in self.media})

    @property
    def late(self) -> float:
        """Seconds from a stop to the last media of its stream, at most."""
        return max((one.at - stop.at for one, stop in self._after()), default=0.0)

    def _after(self) -> Iterator[tuple[Taken, Stop]]:
        for stop in self.stops:
            yield from ((one, stop) for one in self.media if one.stream == stop.stream and stop.at < one.at < stop.again)


def judged(found: Found) -> Verdict[Kind]:
    return Verdict.of(_findings(found))


def _findings(found: Found) -> Iterator[tuple[Kind, str]]:
    yield from ((Kind.TOGETHER, sentence) for sentence in _together(found.media))
    for one, stop in found._after():
        if one.at - stop.at > stop.within:
            yield Kind.LATE, f"{one.stream}, session {one.session}: {one.at - stop.at:.1f} s after a stop"
    for fault, seconds in found.silent:
        if seconds > SILENT:
            yield Kind.SILENT, f"{seconds:.0f} s after {fault}"
    for stream, state, wanted in found.states:
        if state != wanted:
            yield Kind.UNEXPECTED, f"{stream} is {state}, not {wanted}"
    for child in found.children:
        yield Kind.CHILDREN, str(child)
    for place, count in found.secrets.items():
        yield Kind.SECRETS, f"{place}: {count}"


def _together(media: Sequence[Taken]) -> Iterator[str]:
    newest: dict[str, Taken] = {}
    for one in media:
        first = newest.setdefault(one.stream, one)
        if one.session > first.session:
            newest[one.stream] = one
        elif one.session < first.session and one.at - first.at > OVERLAP:
            yield f"{one.stream}: session {one.session} {one.at - first.at:.2f} s after the first media of {first.session}"

"""The rules for live publications under any faults of the pushing workers, judged at the receiver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Final

from faults.findings import Verdict

OVERLAP: Final = 0.25
"""The seconds after the first media of a later session in which media of an earlier one were already in transit."""
AFTER_STOP: Final = 5.0
"""The limit in seconds after an answered stop: the product promises three from its commit on; the rest allows for a busy machine.
"""
AFTER_EVENT: Final = 15.0
"""The limit in seconds after the end of an Event, which a consumer reads first."""
SILENT: Final = 45.0
"""The limit in seconds from the end of a fault to the next media."""


class Kind(StrEnum):
    TOGETHER = "two pushers"
    LATE = "after a stop"
    SILENT = "silent"
    UNEXPECTED = "other states"
    CHILDREN = "processes left"
    SECRETS = "secrets found"


@dataclass(frozen=True, slots=True)
class Taken:
    """Media that arrived: the time, the stream and the session."""

    at: float
    stream: str
    session: int


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop of a stream. After `within` seconds no media may arrive, until `again`."""

    stream: str
    at: float
    within: float = AFTER_STOP
    again: float = inf


@dataclass(frozen=True, slots=True)
class Evidence:
    """The observations. `silent` holds for each fault the longest silence of a stream after it; `states` the actual and the
    required state of a publication at a time; `secrets` the places where a secret was found."""

    media: Sequence[Taken]
    stops: Sequence[Stop] = ()
    silent: Sequence[tuple[str, float]] = ()
    states: Sequence[tuple[str, str, str]] = ()
    children: Sequence[int] = ()
    secrets: Mapping[str, int] = field(default_factory=dict)

    @property
    def sessions(self) -> int:
        return len({(taken.stream, taken.session) for taken in self.media})

    @property
    def late(self) -> float:
        """The most seconds from a stop to the last media of its stream."""
        return max((taken.at - stop.at for taken, stop in self._after()), default=0.0)

    def _after(self) -> Iterator[tuple[Taken, Stop]]:
        for stop in self.stops:
            yield from ((taken, stop) for taken in self.media if taken.stream == stop.stream and stop.at < taken.at < stop.again)


def judge(evidence: Evidence) -> Verdict[Kind]:
    return Verdict.of(_findings(evidence))


def _findings(evidence: Evidence) -> Iterator[tuple[Kind, str]]:
    yield from ((Kind.TOGETHER, sentence) for sentence in _together(evidence.media))
    for taken, stop in evidence._after():
        if taken.at - stop.at > stop.within:
            yield Kind.LATE, f"{taken.stream}, session {taken.session}: {taken.at - stop.at:.1f} s after a stop"
    for fault, seconds in evidence.silent:
        if seconds > SILENT:
            yield Kind.SILENT, f"{seconds:.0f} s after {fault}"
    for stream, state, wanted in evidence.states:
        if state != wanted:
            yield Kind.UNEXPECTED, f"{stream} is {state}, not {wanted}"
    for child in evidence.children:
        yield Kind.CHILDREN, str(child)
    for place, count in evidence.secrets.items():
        yield Kind.SECRETS, f"{place}: {count}"


def _together(media: Sequence[Taken]) -> Iterator[str]:
    newest: dict[str, Taken] = {}
    for taken in media:
        first = newest.setdefault(taken.stream, taken)
        if taken.session > first.session:
            newest[taken.stream] = taken
        elif taken.session < first.session and taken.at - first.at > OVERLAP:
            yield f"{taken.stream}: session {taken.session} {taken.at - first.at:.2f} s after the first media of {first.session}"

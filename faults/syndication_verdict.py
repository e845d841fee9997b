"""What must be true of publications whatever happened to their uploads, judged at the targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from faults.findings import Verdict

_IN_FLIGHT: Final = 6 << 20
"""Bytes of a connection that was lost which nobody has acknowledged: buffers of two sockets and of the link between."""
_OVERHEAD: Final = 0.02
COMPLETED: Final = "Completed"


class Kind(StrEnum):
    WRONG = "wrong hashes"
    MISSING = "completed without object"
    LEFT = "left after hardDelete"
    TWICE = "more than a part sent twice"
    UNEXPECTED = "other ends"


@dataclass(frozen=True, slots=True)
class Upload:
    """One publication. `expected` are the states that it may end in; `sent` counts the bytes on the wire while it was under way, of
    `uploads` publications; `faults` are the connections that were lost meanwhile. `objects`: the SHA-256 of what the target has."""

    place: str
    fault: str
    state: str
    reason: str
    expected: frozenset[str]
    objects: Sequence[str]
    size: int
    sent: int
    part: int
    resumes: bool
    faults: int
    uploads: int = 1
    seconds: float = 0.0

    @property
    def twice(self) -> int:
        """Bytes that were sent more than once, without what the protocol adds."""
        return max(0, int(self.sent - self.uploads * self.size * (1 + _OVERHEAD)))


@dataclass(frozen=True, slots=True)
class Found:
    """`film` is the hash of all that was published; `left` what each target has after everything was deleted there."""

    film: str
    uploads: Sequence[Upload]
    left: Mapping[str, Sequence[str]] = field(default_factory=dict)


def judged(found: Found) -> Verdict[Kind]:
    return Verdict.of(_findings(found))


def _findings(found: Found) -> Iterator[tuple[Kind, str]]:
    for one in found.uploads:
        what = f"{one.place}, {one.fault}"
        if any(other != found.film for other in one.objects):
            yield Kind.WRONG, what
        if one.state == COMPLETED and len(one.objects) < one.uploads:
            yield Kind.MISSING, what
        if one.resumes and one.twice > one.faults * (one.part + _IN_FLIGHT):
            yield Kind.TWICE, f"{what}: {one.twice} bytes"
        if one.state not in one.expected:
            yield Kind.UNEXPECTED, f"{what}: {one.state} ({one.reason})"
    for place, names in found.left.items():
        for name in names:
            yield Kind.LEFT, f"{place}: {name}"

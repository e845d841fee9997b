"""The rules for publications under any faults of their uploads, judged at the targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from faults.findings import Verdict

_IN_FLIGHT: Final = 6 << 20
"""The unacknowledged bytes of a lost connection: buffers of two sockets and of the link between."""
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
    """The outcome of one case.

    `expected` are the states in which a publication may end; `sent` counts the bytes on the wire meanwhile, of `uploads`
    publications; `faults` are the connections that were lost; `objects` the SHA-256 of the objects at the target.
    """

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
        """The bytes that were sent more than once, without the overhead of the protocol."""
        return max(0, int(self.sent - self.uploads * self.size * (1 + _OVERHEAD)))


@dataclass(frozen=True, slots=True)
class Evidence:
    """The observations. `film` is the hash of all that was published; `remains` what each target has after everything was deleted
    there."""

    film: str
    uploads: Sequence[Upload]
    remains: Mapping[str, Sequence[str]] = field(default_factory=dict)


def judge(evidence: Evidence) -> Verdict[Kind]:
    return Verdict.of(_findings(evidence))


def _findings(evidence: Evidence) -> Iterator[tuple[Kind, str]]:
    for upload in evidence.uploads:
        what = f"{upload.place}, {upload.fault}"
        if any(other != evidence.film for other in upload.objects):
            yield Kind.WRONG, what
        if upload.state == COMPLETED and len(upload.objects) < upload.uploads:
            yield Kind.MISSING, what
        if upload.resumes and upload.twice > upload.faults * (upload.part + _IN_FLIGHT):
            yield Kind.TWICE, f"{what}: {upload.twice} bytes"
        if upload.state not in upload.expected:
            yield Kind.UNEXPECTED, f"{what}: {upload.state} ({upload.reason})"
    for place, names in evidence.remains.items():
        for name in names:
            yield Kind.LEFT, f"{place}: {name}"

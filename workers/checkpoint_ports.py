"""What sealing the log needs of the world outside: places that keep checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from workers.bucket_ports import BucketAddress


@dataclass(frozen=True, slots=True)
class CheckpointPlaces:
    """How often the log is sealed, and where its checkpoints are kept beside the database."""

    seconds: float = 60.0
    file: Path | None = None
    bucket: BucketAddress | None = None
    bucket_days: int = 3650
    """How long its objects are locked."""
    time_stamps: str | None = field(default=None, repr=False)
    """Address of an RFC 3161 server."""


@dataclass(frozen=True, slots=True)
class StoredNote:
    """A checkpoint of the first `events` events, as it was signed."""

    number: int
    events: int
    note: str


class Anchor(Protocol):
    """One place. `place` is shown to others: it holds no secret."""

    kind: str
    place: str

    async def keep(self, checkpoint: StoredNote) -> bytes | None:
        """Once more does no harm. Gives what proves it, where something came back. Raises `Unavailable` or `OSError`."""
        ...

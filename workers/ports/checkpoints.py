"""The ports for sealing the log: places outside the database that store checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from workers.ports.buckets import BucketAddress


@dataclass(frozen=True, slots=True)
class CheckpointPlaces:
    """The interval in seconds at which the log is sealed, and the places outside the database where its checkpoints are stored."""

    seconds: float = 60.0
    file: Path | None = None
    bucket: BucketAddress | None = None
    bucket_days: int = 3650
    """The number of days for which the objects in the bucket are locked."""
    time_stamps: str | None = field(default=None, repr=False)
    """Address of an RFC 3161 server."""


@dataclass(frozen=True, slots=True)
class StoredNote:
    """A signed checkpoint of the first `events` events."""

    number: int
    events: int
    note: str


class Anchor(Protocol):
    """A place that stores checkpoints. `place` is its public description and holds no secret."""

    kind: str
    place: str

    async def keep(self, checkpoint: StoredNote) -> bytes | None:
        """Store a checkpoint, and return the proof of it if the place gives one. Repeating the call is harmless. Raise
        `Unavailable` or `OSError`."""
        ...

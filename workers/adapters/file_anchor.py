"""A store of checkpoints in a growing file."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path

from domain.kernel.clock import Clock
from workers.adapters.s3_bucket import S3Bucket
from workers.ports.buckets import BucketAddress
from workers.ports.checkpoints import StoredNote


class BucketAnchor:
    """Stores each checkpoint as an object that cannot be deleted or replaced for some days, not even by its owner."""

    kind = "s3"

    def __init__(self, address: BucketAddress, *, days: int, clock: Clock) -> None:
        self._bucket = S3Bucket(address)
        self._days = timedelta(days=days)
        self._clock = clock
        self.place = str(address)

    async def keep(self, checkpoint: StoredNote) -> None:
        key = f"checkpoint-{checkpoint.events:020}-{checkpoint.number:010}.txt"
        await self._bucket.put_locked(key, checkpoint.note.encode(), until=self._clock() + self._days)


class FileAnchor:
    """Appends checkpoints to a file, separated by empty lines. Best on an append-only disk, or one that the database's
    administrator cannot write to."""

    kind = "file"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.place = str(path)

    async def keep(self, checkpoint: StoredNote) -> None:
        await asyncio.to_thread(self._append, checkpoint.note.encode() + b"\n")

    def _append(self, text: bytes) -> None:
        """Append with a single write, so that no other text comes in between."""
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            if os.write(descriptor, text) != len(text):
                raise OSError("the file was not written completely")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

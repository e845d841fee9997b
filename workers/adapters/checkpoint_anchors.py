"""Places of this installation for checkpoints: a file that grows, and a bucket whose objects are locked."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path

from domain.kernel.clock import Clock
from workers.adapters.s3_bucket import S3Bucket
from workers.checkpoint_ports import StoredNote
from workers.ports import BucketAddress


class FileAnchor:
    """Checkpoints one behind the other, with an empty line between them. Best on a disk that only takes additions, or that
    the database's administrator cannot write to."""

    kind = "file"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.place = str(path)

    async def keep(self, checkpoint: StoredNote) -> None:
        await asyncio.to_thread(self._append, checkpoint.note.encode() + b"\n")

    def _append(self, text: bytes) -> None:
        """One write, so that nobody else's comes between."""
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            if os.write(descriptor, text) != len(text):
                raise OSError("the file was not written whole")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class BucketAnchor:
    """An object for each checkpoint, which nobody can delete or replace for some days, not even its owner."""

    kind = "s3"

    def __init__(self, address: BucketAddress, *, days: int, clock: Clock) -> None:
        self._bucket = S3Bucket(address)
        self._days = timedelta(days=days)
        self._clock = clock
        self.place = str(address)

    async def keep(self, checkpoint: StoredNote) -> None:
        key = f"checkpoint-{checkpoint.events:020}-{checkpoint.number:010}.txt"
        await self._bucket.put_locked(key, checkpoint.note.encode(), until=self._clock() + self._days)

"""A store of checkpoints in a bucket whose objects are locked."""

from __future__ import annotations

from datetime import timedelta

from domain.kernel.clock import Clock
from workers.adapters.s3_bucket import S3Bucket
from workers.bucket_ports import BucketAddress
from workers.checkpoint_ports import StoredNote


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

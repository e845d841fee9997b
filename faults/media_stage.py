"""The product under test with media: members of the job engine, and workers that apply outcomes and delete files of assets."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Final

from faults.jobs_stage import JobStage
from faults.stage import EACH
from tests.support.s3 import client
from workers.adapters.s3_bucket import S3Bucket
from workers.job.bucket_workspaces import BucketWorkspaces
from workers.job.inputs import Inputs
from workers.job.media_paths import JOBS
from workers.job.workspaces import Workspaces

_OPEN: Final = 0o755


class MediaStage(JobStage):
    """A stage with media. `media_root` is the directory that members share; with a bucket, `fetch_media` fills it for
    the verdict."""

    WORKERS: ClassVar[Mapping[str, int]] = {"controller scheduler": EACH, "work": EACH, "outcomes assets": EACH}

    async def put(self, path: str, content: bytes) -> None:
        """Write a file that no job has published."""
        if self.bucket is not None:
            key = f"{self.bucket.prefix}/{path}"
            await asyncio.to_thread(self._store.put_object, Bucket=self.bucket.bucket, Key=key, Body=content)
            return
        place = self.media_root / path
        place.parent.mkdir(exist_ok=True)
        place.parent.chmod(_OPEN)
        place.write_bytes(content)
        place.chmod(_OPEN)

    def published(self) -> dict[str, int]:
        """Return the sizes of all published files, by their paths. This blocks."""
        return {name: size for name, size in self._everything().items() if not name.startswith(".")}

    def unfinished(self) -> dict[int, list[str]]:
        """Return the remaining files of runs by job number, in the shared place and on each machine. This blocks."""
        remaining: dict[int, list[str]] = {}
        local = [name for root in self._local() for name in _below(root)]
        for name in (*self._everything(), *local):
            folder, _, inside = name.partition("/")
            if folder == JOBS:
                remaining.setdefault(int(inside.partition("/")[0]), []).append(name)
        return remaining

    def uploads(self) -> int:
        """Return the number of uploads that were begun and neither completed nor ended. This blocks."""
        if self.bucket is None:
            return 0
        return len(self._store.list_multipart_uploads(Bucket=self.bucket.bucket).get("Uploads", ()))

    async def tidy(self, ended: Collection[int]) -> None:
        """Do what the housekeeping of all members does ten minutes later."""
        for root in self._local() or [self.media_root]:
            if self.bucket is None:
                await Workspaces(root).remove(ended)
            else:
                store = S3Bucket(self.bucket)
                files = BucketWorkspaces(Workspaces(root), store, inputs=Inputs(root, store), clock=lambda: datetime.now(UTC))
                await files.remove(set(await files.jobs()) & set(ended))

    @cached_property
    def _store(self):  # type: ignore[no-untyped-def]
        assert self.bucket is not None
        return client(self.bucket)

    def _local(self) -> list[Path]:
        return sorted(self.work.iterdir()) if self.work.is_dir() else []

    def _everything(self) -> dict[str, int]:
        if self.bucket is None:
            return _below(self.media_root)
        inside = f"{self.bucket.prefix}/"
        pages = self._store.get_paginator("list_objects_v2").paginate(Bucket=self.bucket.bucket, Prefix=inside)
        return {
            str(stored_object["Key"]).removeprefix(inside): int(stored_object["Size"])
            for page in pages
            for stored_object in page.get("Contents", ())
        }


def _below(root: Path) -> dict[str, int]:
    """Return the sizes of the files below a folder. Files come and go meanwhile."""
    sizes = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            with suppress(FileNotFoundError):
                sizes[path.relative_to(root).as_posix()] = path.stat().st_size
    return sizes

"""The job engine under test: two processes each of the API, the controller, the scheduler and the step runners, and two that are
both controllers and step runners, with the workflows of `tests/support/plugins`."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from faults.processes import Supervised
from faults.stage import EACH, Stage
from tests.support.s3 import client
from tests.support.waiting import ROOT
from workers.ports.buckets import BucketAddress

LEASE: Final = 4
"""The seconds of a worker's lease, shorter than in production so that many leases expire in a short run."""

BOTH: Final = "controller work"

_PLUGINS: Final = ROOT / "tests" / "support" / "plugins"
_LATE: Final = (b"is stopped: the lease", b"; its files are deleted")


class JobStage(Stage):
    """A stage with job workers. Steps publish to `media_root`."""

    WORKERS: ClassVar[Mapping[str, int]] = {"relay": EACH, "controller": 2, "scheduler": 2, "work": 2, BOTH: 2}

    def __init__(self, folder: Path, *, kafka: bool, dice: random.Random, bucket: BucketAddress | None = None) -> None:
        """Create a stage. With a `bucket` each process works in a separate folder, as on a separate machine."""
        super().__init__(folder, kafka=kafka, dice=dice)
        self.work, self.bucket = folder / "work", bucket
        self.media_root = folder / "media"
        self.media_root.mkdir(parents=True)

    def _process(self, role: str, number: int, more: dict[str, str]) -> Supervised:
        ours = {
            "PYTHONPATH": f"{ROOT}:{_PLUGINS}",
            "MEDIALEDGER_MEDIA_ROOT": str(self.bucket or self.media_root),
            "MEDIALEDGER_LEASE_SECONDS": str(LEASE),
        }
        if self.bucket is not None:
            ours |= {
                "MEDIALEDGER_MEDIA_WORK": str(self.work / f"{role}-{number}".replace(" ", "-")),
                "MEDIALEDGER_S3_ENDPOINT": str(self.bucket.endpoint),
                "MEDIALEDGER_S3_ACCESS_KEY": str(self.bucket.access_key),
                "MEDIALEDGER_S3_SECRET_KEY": str(self.bucket.secret_key),
            }
        if role not in ("api", "relay"):
            ours["MEDIALEDGER_LOG_LEVEL"] = "INFO"  # the level of the lines that `late` counts
        return super()._process(role, number, more | ours)

    def fetch_media(self) -> None:
        """Copy the published files of the bucket to `media_root`, where they are judged."""
        if self.bucket is None:
            return
        store, inside = client(self.bucket), f"{self.bucket.prefix}/"
        for page in store.get_paginator("list_objects_v2").paginate(Bucket=self.bucket.bucket, Prefix=inside):
            for each in page.get("Contents", ()):
                name = str(each["Key"]).removeprefix(inside)
                if not name.startswith("."):
                    (self.media_root / name).parent.mkdir(parents=True, exist_ok=True)
                    store.download_file(self.bucket.bucket, each["Key"], str(self.media_root / name))

    def late(self) -> int:
        """Return how often a worker stopped or discarded a run because it had lost the lease."""
        return sum(log.read_bytes().count(phrase) for log in self._logs.glob("*work-*.log") for phrase in _LATE)

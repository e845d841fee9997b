"""Each store of media files, empty, and how a file gets into it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from domain.kernel.media_files import MediaFiles
from tests.domain.media_files import MemoryMediaFiles
from tests.support.s3 import client, new_bucket
from tests.support.s3 import moto_endpoint as moto_endpoint
from tests.support.s3 import versity_endpoint as versity_endpoint
from workers.adapters.media_bucket import MediaBucket
from workers.adapters.media_directory import MediaDirectory
from workers.adapters.s3_bucket import S3Bucket
from workers.ports.buckets import BucketAddress


@dataclass(frozen=True)
class Stage:
    files: MediaFiles
    put: Callable[[str, bytes], None]
    """Writes a file, even under a name that begins with a dot."""


def in_directory(root: Path) -> Stage:
    def put(path: str, content: bytes) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)

    return Stage(MediaDirectory(root), put)


def in_memory() -> Stage:
    files = MemoryMediaFiles()
    return Stage(files, files.put)


def in_bucket(address: BucketAddress) -> Stage:
    store = client(address)

    def put(path: str, content: bytes) -> None:
        store.put_object(Bucket=address.bucket, Key=f"{address.prefix}/{path}", Body=content)

    return Stage(MediaBucket(S3Bucket(address)), put)


@pytest.fixture(params=["memory", "directory", "moto", "versitygw"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    match request.param:
        case "memory":
            return in_memory()
        case "directory":
            return in_directory(tmp_path)
        case "moto":
            return in_bucket(new_bucket(request.getfixturevalue("moto_endpoint")))
        case _:
            return in_bucket(new_bucket(request.getfixturevalue("versity_endpoint")))

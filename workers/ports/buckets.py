"""A bucket of an object store, as a port."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """The address of a bucket and the prefix of media in it. Without `endpoint` it is a bucket of Amazon S3; without keys, the
    credentials of the machine are used. With `path_style` the name of the bucket is in the path of URLs, not in the host."""

    bucket: str
    prefix: str = ""
    endpoint: str | None = None
    region: str = "us-east-1"
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    path_style: bool = True

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of a bucket. `etag` is its version, as the store writes it; `sha256` is empty if it is unknown."""

    key: str
    size: int
    modified: datetime
    etag: str
    sha256: str


class Completion(Enum):
    """The outcome of completing an upload. `CHANGED`: the object to replace was replaced by another one meanwhile."""

    DONE = "done"
    NO_UPLOAD = "no upload"
    CHANGED = "changed"


class ObjectStore(Protocol):
    """Objects below one prefix of a bucket. Every call raises `Unavailable` when the store does not answer, and `OSError` when it
    refuses. `workers.adapters.s3_bucket` documents each call."""

    async def head(self, key: str) -> StoredObject | None: ...

    async def list(self, prefix: str, *, limit: int, after: str = "") -> Sequence[StoredObject]: ...

    async def folders(self, prefix: str) -> Sequence[str]: ...

    async def get(self, key: str, *, limit: int) -> tuple[bytes, str] | None: ...

    def pieces(self, key: str, *, etag: str, start: int, size: int) -> AsyncGenerator[bytes, None]: ...

    async def put(self, key: str, content: bytes, *, instead_of: str | None = None) -> bool: ...

    async def delete(self, keys: Collection[str]) -> None: ...

    async def begin_upload(self, key: str, *, sha256: str) -> str: ...

    async def upload_part(self, key: str, upload: str, *, number: int, content: bytes) -> str: ...

    async def complete_upload(
        self, key: str, upload: str, *, parts: Sequence[str], instead_of: str | None = None
    ) -> Completion: ...

    async def end_upload(self, key: str, upload: str) -> None: ...

    async def uploads(self) -> Sequence[tuple[str, str, datetime]]: ...

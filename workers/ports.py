"""What the product needs of the world outside, in its own words. Adapters do it; only the composition roots know which."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Final, Protocol
from uuid import UUID

from domain.kernel.media_files import MediaFile
from projections.kernel.sizes import GIB

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Transcoder(Protocol):
    """Cuts and converts media."""

    async def check(self) -> str | None:
        """Why it cannot be run, in words that name no host, path or secret; `None` when it can."""
        ...


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, whatever its status: a redirect is a reply like others."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes
    """As it was sent, up to as many bytes as were asked for."""
    seconds: float
    address: str
    """The IP address that answered; empty if it is not known."""


class OutboundRefused(Exception):
    """We do not send this, and nothing was sent. One sentence that holds neither user info nor path nor query of the URL."""

    kind: ClassVar[str] = "refused"


class OutboundFailed(Exception):
    """No reply. One sentence, as above; `kind` is dns, connect, tls, timeout, closed, protocol or local, of a download also size.

    Only after dns, connect, tls and local is it certain that the other side did not get the request. After local it is certain too
    that the fault is not its own: this process has no descriptor or memory left for a connection."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


class Outbound(Protocol):
    """Requests over HTTP to addresses that others gave us."""

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
        seconds: float = 15.0,
        most: int = 16_384,
    ) -> Reply:
        """`seconds` bounds all of it, from the name to the last byte; of the reply's body at most `most` bytes are read."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Began:
    """The head of a download, before its first byte is written."""

    headers: Mapping[str, str]
    """By lower-case name."""
    offset: int
    """Where in the file the first byte belongs: 0 if the host sends all of it, whatever was asked for."""
    total: int | None
    """How long the whole file is, if the host says so."""


@dataclass(frozen=True, slots=True)
class Downloaded:
    """An answer to its end. With a status other than 200 and 206 its body was not read, and no file was touched."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    size: int
    """Of the file, with what was there before."""
    url: str
    """Of the answer, after redirects."""


@dataclass(frozen=True, slots=True)
class DownloadLimits:
    """`size` of one file and `free` space to be left are in bytes, `rate` is in bytes a second, `seconds` are all of a step's
    downloads together."""

    size: int = 200 * GIB
    free: int = 1 * GIB
    rate: int = 16 * 1024
    seconds: float = 24 * 3600


DEFAULT_LIMITS: Final = DownloadLimits()


class Download(Protocol):
    """Files over HTTP, from addresses that others gave us."""

    async def download(
        self,
        url: str,
        to: Path,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        offset: int = 0,
        if_range: str | None = None,
        part: tuple[int, int] | None = None,
        seconds_without_data: float = 30.0,
        most: int | None = None,
        began: Callable[[Began], None] = lambda _: None,
        seen: Callable[[bytes], None] = lambda _: None,
    ) -> Downloaded:
        """Raises as `Outbound.request` does; what was written until then stays.

        With an `offset` the rest is asked for, of the version that `if_range` (an entity tag or a date) names. A part that is not
        of this version, or not that part, is a failure of kind protocol. `part` (where it begins, and its size) asks for these
        bytes alone, which become the file; a host that does not send exactly them fails alike. Redirects are followed, `headers`
        to the same origin only. `most` bounds the file, `seconds_without_data` every silence; nothing bounds the whole time. What
        `began` and `seen` raise ends it."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """How a receiver answered a sample notification. `error` is None on success; `id` is the `webhook-id` that was sent."""

    id: UUID
    seconds: float
    status: int | None
    error: str | None
    address: str
    response: str


class WebhookProbe(Protocol):
    """Sends a sample notification in the way of a real one."""

    async def probe(self, webhook: UUID) -> ProbeResult: ...


class OpenMedia(Protocol):
    """A published file that is being read. All of it is of one version, also when the file is replaced meanwhile."""

    file: MediaFile
    etag: str
    """Of this version, without quotes."""

    def read(self, start: int, size: int) -> AsyncGenerator[bytes, None]:
        """In pieces. Raises `Unavailable` or `OSError` when the rest cannot be read."""
        ...

    async def close(self) -> None: ...


class MediaSource(Protocol):
    """Reads published files of any size. A `MediaFiles` that is more than that."""

    async def open(self, path: str) -> OpenMedia | None:
        """None: it is not there."""
        ...


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """Where media are in S3. Without `endpoint` it is Amazon's; without keys the machine has credentials. `path_style`: the bucket
    is named in the path, not in the host."""

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
    """An object of a bucket. `etag` is its version, as the store writes it; `sha256` is empty where it is not known."""

    key: str
    size: int
    modified: datetime
    etag: str
    sha256: str


class ObjectStore(Protocol):
    """Objects below one prefix of a bucket. Every call raises `Unavailable` when the store does not answer, and `OSError` when it
    refuses. `workers.adapters.s3_bucket` says what each does."""

    async def head(self, key: str) -> StoredObject | None: ...

    async def list(self, prefix: str, *, limit: int, after: str = "") -> Sequence[StoredObject]: ...

    async def folders(self, prefix: str) -> Sequence[str]: ...

    async def get(self, key: str, *, limit: int) -> tuple[bytes, str] | None: ...

    def pieces(self, key: str, *, etag: str, start: int, size: int) -> AsyncGenerator[bytes, None]: ...

    async def put(self, key: str, content: bytes, *, instead_of: str | None = None) -> bool: ...

    async def delete(self, keys: Collection[str]) -> None: ...

    async def begin_upload(self, key: str, *, sha256: str) -> str: ...

    async def upload_part(self, key: str, upload: str, *, number: int, content: bytes) -> str: ...

    async def complete_upload(self, key: str, upload: str, *, parts: Sequence[str]) -> bool: ...

    async def end_upload(self, key: str, upload: str) -> None: ...

    async def uploads(self) -> Sequence[tuple[str, str, datetime]]: ...

"""The ports of the product to the outside world, in its own terms. Adapters implement them; only the composition roots choose the
adapters."""

from __future__ import annotations

from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Final, Protocol

from projections.kernel.sizes import GIB

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a request, whatever its status: redirects are returned like other replies."""

    status: int
    headers: Mapping[str, str]
    """The headers by lower-case name."""
    body: bytes
    """The body as it was sent, up to the number of bytes that were requested."""
    seconds: float
    address: str
    """The IP address that answered; empty if it is unknown."""


class OutboundRefused(Exception):
    """Raised when this product refuses to send a request. Nothing was sent. Its text is one sentence that holds neither user info
    nor path nor query of the URL."""

    kind: ClassVar[str] = "refused"


class OutboundFailed(Exception):
    """Raised when a request gets no reply. Its text is one sentence with the same restrictions as that of `OutboundRefused`. `kind`
    is dns, connect, tls, timeout, closed, protocol or local; for a download also size. Only after dns, connect, tls and local is it
    certain that the other side did not receive the request. After local it is also certain that the other side is not at fault:
    this process has no descriptor or memory left for a connection."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.unsent = kind in ("dns", "connect", "tls", "local")


class Outbound(Protocol):
    """HTTP requests to addresses that clients have provided."""

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
        """Send a request and return the reply. `seconds` bounds everything, from resolving the name to the last byte; at most
        `most` bytes of the body of the reply are read."""
        ...

    async def close(self) -> None: ...


class Notifying(Outbound, Protocol):
    """HTTP requests for which the status of the reply may be enough."""

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
        seconds: float = 15.0,
        most: int = 16_384,
        whole: bool = True,
    ) -> Reply:
        """Send a request as `Outbound.request` does. Without `whole`, a body that breaks off or is late is no failure: the reply
        has the part that was received."""
        ...


@dataclass(frozen=True, slots=True)
class DownloadStart:
    """The head of a download, before its first byte is written."""

    headers: Mapping[str, str]
    """The headers by lower-case name."""
    offset: int
    """The offset of the first byte in the file; 0 if the host sends the whole file, whatever was requested."""
    total: int | None
    """The size of the whole file in bytes; None if the host does not report it."""


@dataclass(frozen=True, slots=True)
class Downloaded:
    """A complete download. If the status is neither 200 nor 206, the body was not read and no file was changed."""

    status: int
    headers: Mapping[str, str]
    """The headers by lower-case name."""
    size: int
    """The size of the file in bytes, including what was there before."""
    url: str
    """The URL of the answer, after redirects."""


@dataclass(frozen=True, slots=True)
class DownloadLimits:
    """The limits of downloads. `size` of one file and `free` space to leave are in bytes, `rate` is the slowest rate in bytes a
    second, and `seconds` bounds all downloads of a step together."""

    size: int = 200 * GIB
    free: int = 1 * GIB
    rate: int = 16 * 1024
    seconds: float = 24 * 3600


DEFAULT_LIMITS: Final = DownloadLimits()


class Download(Protocol):
    """Downloads of files over HTTP from addresses that clients have provided."""

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
        began: Callable[[DownloadStart], None] = lambda _: None,
        seen: Callable[[bytes], None] = lambda _: None,
    ) -> Downloaded:
        """Download a file. Raise the same errors as `Outbound.request`; the bytes that were written before a failure stay.

        With an `offset`, the rest of the version that `if_range` (an entity tag or a date) names is requested. A part of another
        version, or another part, is a failure of kind protocol. `part` (its offset and its size) requests these bytes alone, which
        become the file; a host that does not send exactly them fails with the same kind. Redirects are followed, with `headers` to
        the same origin only. `most` bounds the size of the file in bytes and `seconds_without_data` every pause; the total time is
        not bounded. An exception that `began` or `seen` raises ends the download.
        """
        ...

    async def close(self) -> None: ...


class OutboundConnections(Notifying, Download, Protocol):
    """Long transfers to and from addresses that clients have provided, and connections for other protocols than HTTP."""

    async def send(
        self,
        method: str,
        url: str,
        *,
        pieces: AsyncIterable[bytes],
        size: int | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        seconds: float | None = None,
        seconds_without_progress: float | None = None,
        most: int = 1_024,
    ) -> Reply:
        """Send a request whose body is made while it is sent: `size` bytes, or in chunks until it is over. `seconds` limits the
        whole request, `seconds_without_progress` each piece, and the answer after the last one. An exception of `pieces` ends the
        request like a lost connection."""
        ...

    def stream(self, url: str, *, seconds_without_data: float = 10.0) -> AsyncGenerator[bytes, None]:
        """Yield the body of a GET as it comes, which may be endless. Redirects are followed. A status other than 200 is a failure
        of kind protocol."""
        ...

    async def connect(self, authority: str, *, port: int, secure: bool) -> tuple[StreamReader, StreamWriter]:
        """Return a connection for another protocol than HTTP, with TLS if `secure`, to the host of this authority of a URL."""
        ...

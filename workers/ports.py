"""The ports of the product to the outside world, in its own terms. Adapters implement them; only the composition roots choose the
adapters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Final, Protocol
from uuid import UUID

from domain.configuration.channel import StatusCheckStrategy
from domain.configuration.encoding import EncoderPlan
from domain.configuration.points import WatchedPoint
from domain.kernel.media_files import MediaFile
from domain.media_event.values import AudioInput
from domain.provision.desired import Desired, Provided
from projections.kernel.sizes import GIB
from workers.playout.programme import Programme
from workers.playout_ports import PlayoutStatistics

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Transcoder(Protocol):
    """Cuts and converts media."""

    async def check(self) -> str | None:
        """Return why it cannot be run, in words that name no host, path or secret; None if it can."""
        ...


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
class PointReport:
    """The report of a server about a publishing point. `state` is the server's word in lower case. `mark` is a text that changes
    while data arrive, such as the time of the last segment, and "" if the server reports nothing of the kind. `receiving` is True
    or False if the server states whether it receives data, else None."""

    strategy: StatusCheckStrategy
    state: str
    last_updated: datetime | None = None
    mark: str = ""
    receiving: bool | None = None


class PointSilent(Exception):
    """Raised when the state of a publishing point is unknown. Its text is one sentence without any part of the point's address.
    `kind` is that of `OutboundFailed`, or refused (this product does not send requests to that address), unaskable (the point has
    no address to query) or answer (the answer does not state it)."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind

    @property
    def is_at_fault(self) -> bool:
        """Return True if the point is at fault, and not this side or the configuration."""
        return self.kind not in ("refused", "unaskable", "local")


class PointStatus(Protocol):
    """Queries the server of a publishing point for its state."""

    async def ask(self, point: WatchedPoint, *, key: str | None = None, first: StatusCheckStrategy | None = None) -> PointReport:
        """Return the report of the point. Raise `PointSilent` within some seconds. `key` is that of the point's `srvaApi`. If
        several strategies apply, `first` is tried before the others."""
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


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The reply of a receiver to a sample notification. `error` is None on success; `id` is the `webhook-id` that was sent."""

    id: UUID
    seconds: float
    status: int | None
    error: str | None
    address: str
    response: str


class WebhookProbe(Protocol):
    """Sends sample notifications the way real ones are sent."""

    async def probe(self, webhook: UUID) -> ProbeResult: ...


class OpenMedia(Protocol):
    """A published file that is open for reading. All bytes are of one version, even if the file is replaced meanwhile."""

    file: MediaFile
    etag: str
    """The entity tag of this version, without quotes."""

    def read(self, start: int, size: int) -> AsyncGenerator[bytes, None]:
        """Yield the bytes in pieces. Raise `Unavailable` or `OSError` if the rest cannot be read."""
        ...

    async def close(self) -> None: ...


class MediaSource(Protocol):
    """Reads published files of any size. It is a `MediaFiles` with more methods."""

    async def open(self, path: str) -> OpenMedia | None:
        """Open a published file; None if it does not exist."""
        ...


class EncoderFailed(Exception):
    """Raised when an encoder cannot be started or does not do what it is asked. Its text is one sentence without secrets."""


@dataclass(frozen=True, slots=True)
class PointStatistics:
    """Statistics of what was sent to a publishing point. `url` has neither user info nor query."""

    encoder: int
    index: int
    url: str
    bytes: int = 0
    connected: bool = False
    reconnects: int = 0
    dropped: int = 0
    """The number of segments that were never delivered to the point."""
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class EncoderStatistics:
    """Statistics of an encoder since its start."""

    since: datetime
    bytes: int = 0
    frames: int = 0
    fps: float = 0.0
    bitrate: float = 0.0
    """Bits a second of all renditions together."""
    last_error: str = ""
    points: Sequence[PointStatistics] = ()
    playout: PlayoutStatistics | None = None
    """The state of the playout; None if no composition is played."""


@dataclass(frozen=True, slots=True)
class JudgedStatistics(EncoderStatistics):
    """The statistics of an encoder that checks its output."""

    fault: str = ""
    """A sentence on what is wrong with the output. The encoder continues."""


class RunningEncoder(Protocol):
    """A running encoder of a session, from its start to its end."""

    async def ended(self) -> str:
        """Wait until the encoder ends without being stopped, and return the reason in one sentence without secrets. The result is
        empty after `stop`. It may be called again."""
        ...

    @property
    def over(self) -> bool:
        """True if the encoder ended with its source, and starting it again would begin the source anew: a film that is not
        repeated."""
        ...

    async def stop(self, *, final: bool = True) -> None:
        """Stop the encoder, first politely, then by force, within a bounded time. Nothing is sent any more when this returns. It
        may be called again. With `final` the stream is over, and its playlists say so; otherwise another session follows."""
        ...

    def statistics(self) -> EncoderStatistics: ...

    def audio_inputs(self) -> Sequence[AudioInput] | None:
        """Return the audio inputs of the source; None while they are unknown."""
        ...


class Encoder(Protocol):
    """Encodes a source and sends the result to publishing points."""

    async def start(
        self,
        plan: EncoderPlan,
        *,
        channel: str,
        session: int,
        may_send: Callable[[], bool],
        programme: Programme | None = None,
    ) -> RunningEncoder:
        """Start an encoder. With a `programme` it plays the programme instead of the source of the plan. Raise `EncoderFailed`. A
        point that cannot be reached is no failure: the encoder retries. `may_send` is called before every write to a point; once it
        returns False nothing is sent, so a frozen worker that wakes up sends nothing. A start may be cancelled: it ends at once and
        leaves nothing behind."""
        ...

    async def check(self, plan: EncoderPlan) -> str | None:
        """Return why it could not be started as planned, or which points cannot be reached; None if nothing is wrong."""


class ProvisionProgress(Protocol):
    """The progress messages of a provisioner: entries of the log store about the Events that wait for it, without secrets."""

    async def info(self, message: str) -> None: ...


HALT_SECONDS: Final = 300.0
"""Seconds for which a provisioner may continue after a halt, so that a program can write down what it has made."""


class Halt(asyncio.Event):
    """An event that is set when a run is to end soon, even in the middle of a step. `ours` returns True while the run may begin a
    step; once this is uncertain, the run ends before the next step."""

    def __init__(self, ours: Callable[[], bool] = lambda: True) -> None:
        super().__init__()
        self._ours = ours
        self._forbade = False

    @property
    def forbids(self) -> bool:
        """True once the run may not begin another step. It stays True: a run that gave up a lease for good does not resume when the
        lease is renewed a moment too late."""
        self._forbade = self._forbade or self.is_set() or not self._ours()
        return self._forbade


class Provisioner(Protocol):
    """Brings about the desired state of one infrastructure key. Two calls for the same key never overlap in any process."""

    async def provide(self, desired: Desired, *, progress: ProvisionProgress, halt: Halt) -> Provided:
        """Make what is missing, and release what is not desired. Existing resources are changed only if `allow_updates` says so.
        Repeating the call with the same state changes nothing. When `halt` is set, the call ends soon, with the result so far. A
        fault is returned as a `reason`, not raised."""
        ...

    async def plan(self, desired: Desired) -> str:
        """Return what `provide` would do now, in readable text: a line for each change, without secrets. Nothing is changed."""
        ...

    async def local_keys(self) -> Sequence[str]:
        """Return the keys that have local state on this machine."""
        ...

    async def forget(self, key: str) -> None:
        """Remove the local state of a key for which nothing exists or is desired any more."""
        ...

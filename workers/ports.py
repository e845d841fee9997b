"""What the product needs of the world outside, in its own words. Adapters do it; only the composition roots know which."""

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
        self.unsent = kind in ("dns", "connect", "tls", "local")


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


class Notifying(Outbound, Protocol):
    """Requests whose answers may be taken by their status alone."""

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
        """As that of `Outbound`. Without `whole` the status counts: of a body that breaks off, or does not come in time, the reply
        has what came."""
        ...


@dataclass(frozen=True, slots=True)
class PointReport:
    """What the server of a publishing point says of it. `state` is its word for it, in lower case; `mark` is a text that changes
    while data come, such as the time of the last segment, and "" where it says nothing of the kind; `receiving` is what it says
    itself of data, None where it does not."""

    strategy: StatusCheckStrategy
    state: str
    last_updated: datetime | None = None
    mark: str = ""
    receiving: bool | None = None


class PointSilent(Exception):
    """Nothing is known of a publishing point. One sentence without any part of its address; `kind` is that of `OutboundFailed`,
    refused (we do not ask there), unaskable (it has no address that could be asked) or answer (its answer does not say)."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind

    @property
    def of_the_point(self) -> bool:
        """Whether the point is to blame, and not this side or the configuration."""
        return self.kind not in ("refused", "unaskable", "local")


class PointStatus(Protocol):
    """Asks the server of a publishing point for the state of it."""

    async def ask(self, point: WatchedPoint, *, key: str | None = None, first: StatusCheckStrategy | None = None) -> PointReport:
        """Raises `PointSilent`, within some seconds. `key` is that of the point's `srvaApi`. Of several strategies `first` is tried
        before the others."""
        ...


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


class EncoderFailed(Exception):
    """An encoder cannot be started, or does not do what it is asked. One sentence without secrets."""


@dataclass(frozen=True, slots=True)
class PointStatistics:
    """What was sent to a publishing point. `url` has neither user info nor query."""

    encoder: int
    index: int
    url: str
    bytes: int = 0
    connected: bool = False
    reconnects: int = 0
    dropped: int = 0
    """Segments that it never got."""
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class EncoderStatistics:
    """What an encoder did since it was started."""

    since: datetime
    bytes: int = 0
    frames: int = 0
    fps: float = 0.0
    bitrate: float = 0.0
    """Bits a second, of all renditions together."""
    last_error: str = ""
    points: Sequence[PointStatistics] = ()
    playout: PlayoutStatistics | None = None
    """None where no composition is played."""


@dataclass(frozen=True, slots=True)
class JudgedStatistics(EncoderStatistics):
    """The statistics of an encoder that looks at what it sends."""

    fault: str = ""
    """A sentence on what is wrong with the output. The encoder goes on."""


class RunningEncoder(Protocol):
    """One encoder of a session, from its start to its end."""

    async def ended(self) -> str:
        """Waits until it ends by itself: one sentence why, without secrets. May be called again; empty after `stop`."""
        ...

    @property
    def over(self) -> bool:
        """Whether it ended with its source, which a further start would begin anew: a film that is not repeated."""
        ...

    async def stop(self, *, final: bool = True) -> None:
        """First politely, then by force, within a bound. Nothing is sent any more when this returns. May be called again. `final`:
        the stream is over, and its playlists say so; else a further session follows."""
        ...

    def statistics(self) -> EncoderStatistics: ...

    def audio_inputs(self) -> Sequence[AudioInput] | None:
        """None: not known yet."""
        ...


class Encoder(Protocol):
    """Encodes a source and sends it to publishing points."""

    async def start(
        self,
        plan: EncoderPlan,
        *,
        channel: str,
        session: int,
        may_send: Callable[[], bool],
        programme: Programme | None = None,
    ) -> RunningEncoder:
        """With a `programme` it plays that, instead of its own source. Raises `EncoderFailed`. A point that cannot be reached is
        no failure: it is tried again. `may_send` is asked before every write to a point: once it is false nothing is sent, so that
        a frozen worker that wakes up sends nothing. A start may be cancelled: it ends at once, and leaves nothing behind."""
        ...

    async def check(self, plan: EncoderPlan) -> str | None:
        """Why it could not be started as planned, or which points cannot be reached; None when all is well."""


class ProvisionProgress(Protocol):
    """Where a provisioner says what it does: entries of the log store, about the Events that wait for it. Never a secret."""

    async def info(self, message: str) -> None: ...


HALT_SECONDS: Final = 300.0
"""So long a provisioner may go on after a halt: a program must be able to write what it has made."""


class Halt(asyncio.Event):
    """Set when a run is to end soon, also in the middle of a step. `ours`: whether it may begin one; where that is no longer
    certain the run ends before the next."""

    def __init__(self, ours: Callable[[], bool] = lambda: True) -> None:
        super().__init__()
        self._ours = ours
        self._forbade = False

    @property
    def forbids(self) -> bool:
        """Once it has, always: a lease that is renewed a moment too late does not make an end of a run that gave up for it."""
        self._forbade = self._forbade or self.is_set() or not self._ours()
        return self._forbade


class Provisioner(Protocol):
    """Brings about what is desired for one infrastructure key. Two calls for the same key never overlap, of whichever process."""

    async def provide(self, desired: Desired, *, progress: ProvisionProgress, halt: Halt) -> Provided:
        """Make what is missing, and let go what is not desired. What exists is changed only where `allow_updates` says so. Another
        call with the same changes nothing. When `halt` is set it ends soon, with what is there then. A fault is a `reason`, not an
        exception."""
        ...

    async def plan(self, desired: Desired) -> str:
        """What `provide` would do now, for people: a line for each change, without secrets. Nothing changes."""
        ...

    async def kept(self) -> Sequence[str]:
        """The keys of which something is kept on this machine."""
        ...

    async def forget(self, key: str) -> None:
        """Nothing of the key is there or wanted any more: remove what was kept."""
        ...

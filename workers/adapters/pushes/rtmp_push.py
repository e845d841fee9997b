"""Pushes of live streams to servers of RTMP and RTMPS, as tags of FLV. Nothing is encoded anew."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final
from urllib.parse import SplitResult, urlsplit

from projections.kernel.background_task import start_task
from workers.adapters.encoders.amf import Value, encoded
from workers.adapters.encoders.point import NotSent
from workers.adapters.encoders.queued import Queued
from workers.adapters.encoders.rtmp import DATA, VIDEO, Publication, Target
from workers.adapters.encoders.rtmp_point import PORTS, STUCK, Interleaved, Tag, header_tag, kind_of
from workers.adapters.encoders.tracks import Track
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.pushes.live_stream import LiveStreams, OpenStream
from workers.live_ports import LiveIngest
from workers.ports import OutboundFailed, OutboundRefused
from workers.push_ports import Push, PushFailed, PushRecord

_LONGEST_JUMP: Final = 30.0
"""Seconds that the times of a stream may jump on before it counts as another one."""
_GOODBYE: Final = 1.0
"""Seconds in which a server is told that the stream has ended."""
_MOST_EARLY: Final = 512
_MOST_HELD: Final = 128 * 1024 * 1024
"""Bytes of one track that wait for the other."""
_H264, _AAC = 7.0, 10.0
"""The numbers of codecs in FLV."""


class RtmpPusher:
    """The port `Pusher`."""

    def __init__(self, client: GuardedClient, streams: LiveStreams) -> None:
        self._client = client
        self._streams = streams

    async def push(self, push: Push, record: PushRecord) -> None:
        parts, target = _target(push.ingest)
        async with self._streams.opened(push.urls, push.sound) as stream:
            first = await stream.next()
            with _target_faults():
                async with self._published(push, target, parts=parts) as connection:
                    await _Sending(push, record, connection, tracks=stream.tracks).all(stream, first)

    @asynccontextmanager
    async def _published(self, push: Push, target: Target, *, parts: SplitResult) -> AsyncIterator[_Connection]:
        scheme = parts.scheme.lower()
        _allowed(push)
        reader, writer = await self._client.connect(parts.netloc, port=parts.port or PORTS[scheme], secure=scheme == "rtmps")
        publication = Publication(reader, writer)
        connection = _Connection(publication)
        try:
            async with asyncio.timeout(STUCK):
                await publication.publish(target)
            connection.watch()
            yield connection
        finally:
            with suppress(NotSent, OSError, EOFError, TimeoutError):
                if connection.open and push.may_send():
                    async with asyncio.timeout(_GOODBYE):
                        await publication.end(target.key)
                        writer.close()
                        await writer.wait_closed()
            await connection.close()
            writer.transport.abort()


class _Connection:
    """One that publishes, and what its server says meanwhile."""

    def __init__(self, publication: Publication) -> None:
        self._publication = publication
        self._watching: asyncio.Task[None] | None = None

    def watch(self) -> None:
        self._watching = start_task(self._watch(), what="answers of a push")

    @property
    def open(self) -> bool:
        return self._watching is not None and not self._watching.done()

    async def send(self, kind: int, data: bytes, *, time: int) -> None:
        """Raises `NotSent`, `OSError`, `EOFError` and `TimeoutError`."""
        if not self.open:
            raise NotSent("It closed the connection.")
        async with asyncio.timeout(STUCK):
            await self._publication.send(kind, data, time=time)

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    async def _watch(self) -> None:
        with suppress(NotSent, OSError, EOFError):
            await self._publication.watch()


class _Sending:
    """What is sent on one connection: as fast as it is shown."""

    def __init__(self, push: Push, record: PushRecord, connection: _Connection, *, tracks: Sequence[Track]) -> None:
        self._push = push
        self._record = record
        self._connection = connection
        self._tracks = tracks
        self._order = Interleaved(tracks)
        self._begun: float | None = None
        self._latest = 0.0
        self._early: list[Queued] = []
        self._early_bytes = 0

    async def all(self, stream: OpenStream, first: Queued, /) -> None:
        """Until something fails."""
        await self._head()
        queued = first
        while True:
            for tag in self._in_order(queued):
                await self._send_in_time(tag)
            if self._order.held > _MOST_HELD:
                raise PushFailed("source", "One track of the stream of the Event comes too late for the other.")
            queued = await stream.next()

    async def _head(self) -> None:
        await self._send((0, DATA, encoded("@setDataFrame", "onMetaData", self._described())))
        for track in self._tracks:
            await self._send((0, kind_of(track), header_tag(track)))

    def _described(self) -> Value:
        """`session` is the number of the session that pushes: of two that follow each other, the later has the higher one."""
        said: dict[str, Value] = {"encoder": "medialedger", "session": float(self._push.session)}
        for track in self._tracks:
            if track.plan.video:
                said |= {"width": float(track.header.width), "height": float(track.header.height), "videocodecid": _H264}
            else:
                said |= {"audiocodecid": _AAC}
        return said

    def _in_order(self, queued: Queued) -> Iterator[Tag]:
        """Sound that comes before the first key frame waits for it."""
        if self._begun is None and not (queued.track.plan.video and queued.opens):
            self._early.append(queued)
            self._early_bytes += queued.weight
            if len(self._early) > _MOST_EARLY or self._early_bytes > _MOST_HELD:
                raise PushFailed("source", "The stream of the Event has no key frame.")
            return
        early, self._early = self._early, []
        self._begun = self._begun or time.monotonic()
        yield from self._order.add(queued)
        for each in early:
            if not each.track.plan.video:
                yield from self._order.add(each)

    async def _send_in_time(self, tag: Tag) -> None:
        at = tag[0] / 1000
        if at < self._latest - 1.0:
            raise PushFailed("source", "The times of the stream of the Event went back.")
        self._latest = max(self._latest, at)
        assert self._begun is not None
        early = self._begun + at - time.monotonic()
        if early > _LONGEST_JUMP:
            raise PushFailed("source", "The times of the stream of the Event jumped.")
        if early > 0:
            await asyncio.sleep(early)
        await self._send(tag)
        self._record.took(len(tag[2]), frames=tag[1] == VIDEO)
        self._push.arrived()

    async def _send(self, tag: Tag) -> None:
        at, kind, data = tag
        _allowed(self._push)
        await self._connection.send(kind, data, time=at)


def _allowed(push: Push) -> None:
    if not push.may_send():
        raise PushFailed("worker", "This worker may not send any more.")


@contextmanager
def _target_faults() -> Iterator[None]:
    try:
        yield
    except (NotSent, OutboundRefused, OutboundFailed) as fault:
        raise PushFailed("target", str(fault)) from None
    except TimeoutError:
        raise PushFailed("target", f"It took nothing for {STUCK:g} s.") from None
    except (OSError, EOFError):
        raise PushFailed("target", "It closed the connection.") from None


def _target(ingest: LiveIngest) -> tuple[SplitResult, Target]:
    """Raises `PushFailed`."""
    try:
        parts = urlsplit(ingest.url)
        _ = parts.port
    except ValueError:
        raise PushFailed("target", "The address that takes the stream cannot be read.", hopeless=True) from None
    application = parts.path.strip("/")
    if parts.scheme.lower() not in PORTS:
        raise PushFailed("target", "A stream can be pushed to rtmp:// and rtmps:// only.", hopeless=True)
    if not application or not ingest.stream_name or "@" in parts.netloc:
        raise PushFailed("target", "The address that takes the stream must be like rtmp://host/application.", hopeless=True)
    query = f"?{parts.query}" if parts.query else ""
    return parts, Target(f"{parts.scheme.lower()}://{parts.netloc}", application, f"{ingest.stream_name}{query}")

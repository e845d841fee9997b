"""Pushes of live streams to RTMP and RTMPS servers, as FLV tags, without encoding them again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from math import inf
from typing import Final
from urllib.parse import SplitResult, urlsplit

from workers.adapters.encoders.amf import Value, encode
from workers.adapters.encoders.flv_tags import LATE, Tag, TagInterleaver, header_tag, kind_of
from workers.adapters.encoders.fragment_queue import QueuedFragment
from workers.adapters.encoders.point import NotSent
from workers.adapters.encoders.rtmp import DATA, PORTS, STUCK, VIDEO, RtmpPublication, RtmpTarget
from workers.adapters.encoders.tracks import Track
from workers.adapters.pushes.live_stream import OpenStream, StreamOpener
from workers.ports.live import LiveIngest
from workers.ports.outbound import OutboundConnections, OutboundFailed, OutboundRefused
from workers.ports.pushes import Push, PushFailed, PushRecord

_LONGEST_JUMP: Final = 30.0
"""Seconds by which the times of a stream may jump ahead before it counts as a different stream."""
_MOST_WAITED: Final = 20.0
"""The total delay in seconds that late tracks may cause."""
_GOODBYE: Final = 1.0
"""The time limit in seconds for announcing the end of the stream to the server."""
_MOST_EARLY: Final = 512
_MOST_HELD: Final = 128 * 1024 * 1024
"""The limit in bytes for fragments that wait for the first key frame."""
_H264, _AAC = 7.0, 10.0
"""The numbers of codecs in FLV."""


class RtmpPusher:
    """The port `Pusher`."""

    def __init__(self, client: OutboundConnections, streams: StreamOpener) -> None:
        self._client = client
        self._streams = streams

    async def push(self, push: Push, record: PushRecord) -> None:
        parts, target = _target(push.ingest)
        async with self._streams.open(push.urls, push.sound) as stream:
            first = await stream.next()
            with _target_faults():
                async with self._connection(push, target, parts=parts) as publication, publication.watched():
                    await _Sending(push, record, publication, tracks=stream.tracks).all(stream, first)

    @asynccontextmanager
    async def _connection(self, push: Push, target: RtmpTarget, *, parts: SplitResult) -> AsyncIterator[RtmpPublication]:
        scheme = parts.scheme.lower()
        _require_permission(push)
        reader, writer = await self._client.connect(parts.netloc, port=parts.port or PORTS[scheme], secure=scheme == "rtmps")
        publication = RtmpPublication(reader, writer)
        begun = False
        try:
            async with asyncio.timeout(STUCK):
                await publication.publish(target)
            begun = True
            yield publication
        finally:
            with suppress(NotSent, OSError, EOFError, TimeoutError):
                if begun and not reader.at_eof() and push.may_send():
                    async with asyncio.timeout(_GOODBYE):
                        await publication.end(target.key)
                        writer.close()
                        await writer.wait_closed()
            writer.transport.abort()


class _Sending:
    """Sends on one connection, as fast as the media are shown.

    Segments of the tracks come alternately, so one track may be far behind when a segment comes. It is waited for up to `LATE`
    seconds after its time; then the other track is sent without it, and everything after it is delayed as much, so that there is
    more time the next time.
    """

    def __init__(self, push: Push, record: PushRecord, publication: RtmpPublication, *, tracks: Sequence[Track]) -> None:
        self._push = push
        self._record = record
        self._publication = publication
        self._tracks = tracks
        self._order = TagInterleaver(tracks)
        self._begun: float | None = None
        self._patience, self._waited = LATE, 0.0
        self._starts: dict[str, float] = {}
        self._early: list[QueuedFragment] = []
        self._early_bytes = 0

    async def all(self, stream: OpenStream, first: QueuedFragment, /) -> None:
        """Send until something fails."""
        await self._head()
        await self._send_in_time(self._in_order(first))
        while True:
            try:
                async with asyncio.timeout(self._waits()):
                    queued = await stream.next()
            except TimeoutError:
                await self._send_in_time(self._overdue())
            else:
                if await self._send_in_time(self._in_order(queued)):
                    self._patience = LATE

    def _waits(self) -> float | None:
        """Return how many seconds the first waiting tag still waits for another track. None if no tag waits."""
        first = self._order.first
        if first is None or self._begun is None:
            return None
        return max(self._begun + first + self._patience - time.monotonic(), 0.0)

    def _overdue(self) -> Iterator[Tag]:
        """Return the tags that no longer wait for the other track, until it has caught up."""
        assert self._begun is not None
        if self._patience and self._waited < _MOST_WAITED:
            self._begun, self._waited = self._begun + LATE, self._waited + LATE
        self._patience = 0.0
        return self._order.before(time.monotonic() - self._begun)

    async def _head(self) -> None:
        await self._send((0, DATA, encode("@setDataFrame", "onMetaData", self._metadata())))
        for track in self._tracks:
            await self._send((0, kind_of(track), header_tag(track)))

    def _metadata(self) -> Value:
        """Return the metadata of the stream. `session` is the number of the pushing session; a later one is higher."""
        members: dict[str, Value] = {"encoder": "medialedger", "session": float(self._push.session)}
        for track in self._tracks:
            if track.plan.video:
                members |= {"width": float(track.header.width), "height": float(track.header.height), "videocodecid": _H264}
            else:
                members |= {"audiocodecid": _AAC}
        return members

    def _in_order(self, queued: QueuedFragment) -> Iterator[Tag]:
        """Yield tags in order. Sound that comes before the first key frame waits for it."""
        if queued.start < self._starts.get(queued.track.name, -inf) - 1.0:
            raise PushFailed("source", "The times of the stream of the Event went back.")
        self._starts[queued.track.name] = queued.start
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

    async def _send_in_time(self, tags: Iterator[Tag]) -> bool:
        """Send each tag at its time. Return True if there were any."""
        sent = False
        for tag in tags:
            assert self._begun is not None
            early = self._begun + tag[0] / 1000 - time.monotonic()
            if early > _LONGEST_JUMP:
                raise PushFailed("source", "The times of the stream of the Event jumped.")
            if early > 0:
                await asyncio.sleep(early)
            await self._send(tag)
            self._record.took(len(tag[2]), frames=tag[1] == VIDEO)
            self._push.arrived()
            sent = True
        return sent

    async def _send(self, tag: Tag) -> None:
        at, kind, data = tag
        _require_permission(self._push)
        async with asyncio.timeout(STUCK):
            await self._publication.send(kind, data, time=at)


def _require_permission(push: Push) -> None:
    if not push.may_send():
        raise PushFailed("worker", "This worker may no longer send.")


@contextmanager
def _target_faults() -> Iterator[None]:
    try:
        yield
    except (NotSent, OutboundRefused, OutboundFailed) as fault:
        raise PushFailed("target", str(fault)) from None
    except TimeoutError:
        raise PushFailed("target", f"It accepted no data for {STUCK:g} s.") from None
    except (OSError, EOFError):
        raise PushFailed("target", "It closed the connection.") from None


def _target(ingest: LiveIngest) -> tuple[SplitResult, RtmpTarget]:
    """Return the parts of the URL, and the destination. Raises `PushFailed`."""
    try:
        parts = urlsplit(ingest.url)
        _ = parts.port
    except ValueError:
        raise PushFailed("target", "The address for the stream is not valid.", hopeless=True) from None
    application = parts.path.strip("/")
    if parts.scheme.lower() not in PORTS:
        raise PushFailed("target", "A stream can be pushed to rtmp:// and rtmps:// only.", hopeless=True)
    if not application or not ingest.stream_name or "@" in parts.netloc:
        raise PushFailed("target", "The address for the stream must be like rtmp://host/application.", hopeless=True)
    query = f"?{parts.query}" if parts.query else ""
    return parts, RtmpTarget(f"{parts.scheme.lower()}://{parts.netloc}", application, f"{ingest.stream_name}{query}")

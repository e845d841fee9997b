"""A publishing point that takes RTMP or RTMPS: the rendition with the highest bitrate and the first sound, as FLV tags."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterator, Sequence
from math import inf
from typing import Final
from urllib.parse import urlsplit

from domain.channel.encoding import PointPlan
from projections.kernel.background_task import start_task
from projections.kernel.sizes import MIB
from workers.adapters.encoders.point import NotSent, Pauses, Point, Sending, sentence
from workers.adapters.encoders.queued import FragmentQueue, QueuedFragment
from workers.adapters.encoders.rtmp import AUDIO, VIDEO, RtmpPublication, RtmpTarget
from workers.adapters.encoders.tracks import Track
from workers.media.cmaf import CmafFragment
from workers.ports.encoders import EncoderFailed
from workers.ports.outbound import OutboundConnections, OutboundFailed, OutboundRefused

STUCK: Final = 10.0
_OVERHEAD: Final = 250
"""The memory for each tag besides its media, in bytes."""
PORTS: Final = {"rtmp": 1935, "rtmps": 443}
LATE: Final = 2.0
"""Seconds that a track waits for another one that delivers nothing."""
MOST_BUFFERED: Final = 64 * MIB
"""The limit in bytes for the memory of tags that wait for another track."""


class RtmpPoint(Point):
    """A publishing point for RTMP. Raises `EncoderFailed` for a URL without an application and a key."""

    def __init__(self, plan: PointPlan, sending: Sending, *, client: OutboundConnections) -> None:
        super().__init__(plan, sending)
        self._client = client
        self._target = target_of(plan)
        self._queue = FragmentQueue(self._dropped)
        self._tracks: Sequence[Track] = ()
        self._task: asyncio.Task[None] | None = None
        self._over = False

    def begin(self, tracks: Sequence[Track]) -> None:
        pictures = [track for track in tracks if track.plan.video]
        sounds = [track for track in tracks if not track.plan.video]
        self._tracks = [max(pictures, key=lambda track: track.plan.bitrate), *sounds[:1]]
        self._task = start_task(self._run(), what="publishing point")

    def take_fragment(self, track: Track, fragment: CmafFragment) -> None:
        if track in self._tracks:
            self._queue.put(track, fragment)

    async def finish(self, *, final: bool) -> None:
        self._queue.end()
        if self._task is not None:
            await asyncio.gather(self._task)

    async def abort(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        pauses = Pauses()
        while not self._over:
            try:
                if await self._queue.next() is None:
                    return
                await self._published(pauses)
            except (NotSent, OutboundRefused, OutboundFailed) as fault:
                why = sentence(fault)
            except TimeoutError:
                why = f"It accepted no data for {STUCK:g} s."
            except (OSError, EOFError):
                why = "It closed the connection."
            else:
                return
            self.record.refused(why)
            await pauses.wait()

    async def _published(self, pauses: Pauses) -> None:
        """Send over one connection until the stream is over."""
        self.record.allowed()
        parts = urlsplit(self.record.plan.url)
        scheme = parts.scheme.lower()
        reader, writer = await self._client.connect(parts.netloc, port=parts.port or PORTS[scheme], secure=scheme == "rtmps")
        publication = RtmpPublication(reader, writer)
        try:
            async with asyncio.timeout(STUCK):
                await publication.publish(self._target)
            async with publication.watched():
                await self._send_all(publication, pauses)
            async with asyncio.timeout(STUCK):
                await publication.end(self._target.key)
        finally:
            writer.transport.abort() if not self._over else writer.close()

    async def _send_all(self, publication: RtmpPublication, pauses: Pauses) -> None:
        self._queue.to_key_frame()
        for track in self._tracks:
            await self._send(publication, header_tag(track), kind=kind_of(track), time=0)
        order = Interleaved(self._tracks, late=LATE)
        while (queued := await self._queue.next()) is not None:
            for time, kind, data in order.add(queued):
                await self._send(publication, data, kind=kind, time=time)
                self.record.took()
                pauses.reset()
            self._queue.done(queued)
        self._over = True
        for time, kind, data in order.rest():
            await self._send(publication, data, kind=kind, time=time)

    async def _send(self, publication: RtmpPublication, data: bytes, *, kind: int, time: int) -> None:
        self.record.allowed()
        async with asyncio.timeout(STUCK):
            await publication.send(kind, data, time=time)
        self.record.bytes += len(data)

    def _dropped(self) -> None:
        self.record.dropped += 1


_KEY, _BETWEEN = 0x17, 0x27
"""The first byte of an H.264 tag: for a key frame, and for any other frame."""
Tag = tuple[int, int, bytes]
"""The time in milliseconds, the kind, and the data."""


class Interleaved:
    """Sorts the tags of all tracks by their times, since each fragment contains a part of a second of one track. The first key
    frame has the time 0, and everything before it is dropped.

    A track that is `late` seconds of media behind another one is not waited for until it delivers again. Tags that come after later
    tags were given are dropped, for video up to the next key frame.
    """

    def __init__(self, tracks: Sequence[Track], *, late: float = inf) -> None:
        self._late = late
        self._complete_until = {track.name: -inf for track in tracks}
        """The time up to which each track is complete; infinite for a track that is not waited for."""
        self._sent_configurations = {track.name: track.header.configuration for track in tracks}
        """The decoder configuration that was last sent for each track."""
        self._zero: float | None = None
        self._given = -inf
        self._cut = False
        """True if video was dropped: the following frames cannot be decoded up to a key frame."""
        self._heap: list[tuple[float, int, int, bytes]] = []
        self._count = self.buffered = 0

    @property
    def first(self) -> float | None:
        """The time of the first waiting tag, in seconds from the first key frame. None if no tag waits."""
        return self._heap[0][0] - (self._zero or 0.0) if self._heap else None

    def add(self, queued: QueuedFragment) -> Iterator[Tag]:
        """Add a fragment. Yield the tags that no earlier tag can precede any more."""
        track, fragment = queued.track, queued.fragment
        if self._zero is None:
            if not (track.plan.video and fragment.key):
                return
            self._zero = self._given = queued.start
            self._complete_until = dict.fromkeys(self._complete_until, queued.start)
        self._hold(track, fragment)
        end = (fragment.time + fragment.duration) / track.header.timescale
        self._complete_until[track.name] = end
        for name, time in self._complete_until.items():
            if time < end - self._late:
                self._complete_until[name] = inf
        yield from self._until(min(self._complete_until.values()))
        while self.buffered > MOST_BUFFERED:
            yield self._next()

    def before(self, seconds: float) -> Iterator[Tag]:
        """Yield the tags that are shown before this time, counted like `first`, whatever they wait for."""
        yield from self._until(seconds + (self._zero or 0.0))

    def rest(self) -> Iterator[Tag]:
        yield from self._until(inf)

    def _hold(self, track: Track, fragment: CmafFragment) -> None:
        for time, data in _tags(track, fragment):
            late = time < self._given
            if track.plan.video:
                late = self._cut = late or (self._cut and data[0] != _KEY)
            if not late:
                if self._sent_configurations[track.name] != track.header.configuration:
                    self._sent_configurations[track.name] = track.header.configuration
                    self._push(time, track, header_tag(track))
                self._push(time, track, data)

    def _push(self, time: float, track: Track, data: bytes) -> None:
        self._count += 1
        self.buffered += _OVERHEAD + len(data)
        heapq.heappush(self._heap, (time, self._count, kind_of(track), data))

    def _until(self, time: float) -> Iterator[Tag]:
        while self._heap and self._heap[0][0] < time:
            yield self._next()

    def _next(self) -> Tag:
        self._given, _, kind, data = heapq.heappop(self._heap)
        self.buffered -= _OVERHEAD + len(data)
        return round((self._given - (self._zero or 0.0)) * 1000), kind, data


def _tags(track: Track, fragment: CmafFragment) -> Iterator[tuple[float, bytes]]:
    """Yield the time in seconds and the body of each tag (Adobe Flash Video File Format, E.4.2 and E.4.3)."""
    at, time, scale = fragment.media, fragment.time, track.header.timescale
    for sample in fragment.samples:
        media = fragment.data[at : at + sample.size]
        if track.plan.video:
            shift = round(sample.shift * 1000 / scale) & 0xFFFFFF
            yield time / scale, bytes([_KEY if sample.key else _BETWEEN, 1]) + shift.to_bytes(3) + media
        else:
            yield time / scale, b"\xaf\1" + media
        at, time = at + sample.size, time + sample.duration


def header_tag(track: Track) -> bytes:
    return (b"\x17\0\0\0\0" if track.plan.video else b"\xaf\0") + track.header.configuration


def kind_of(track: Track) -> int:
    return VIDEO if track.plan.video else AUDIO


def target_of(plan: PointPlan) -> RtmpTarget:
    """Return the destination of a plan. Raises `EncoderFailed`."""
    parts = urlsplit(plan.url)
    application, _, key = parts.path.strip("/").rpartition("/")
    if not application or not key or "@" in parts.netloc:
        raise EncoderFailed(f"The URL of the publishing point {plan.index} must be like rtmp://host/application/key.")
    query = f"?{parts.query}" if parts.query else ""
    return RtmpTarget(f"{parts.scheme.lower()}://{parts.netloc}", application, f"{key}{query}")

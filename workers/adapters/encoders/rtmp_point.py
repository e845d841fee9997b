"""A publishing point that takes RTMP or RTMPS: the first rendition with the first sound, as tags of FLV."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from domain.configuration.encoding import PointPlan
from projections.kernel.background_task import start_task
from workers.adapters.encoders.cmaf import Fragment
from workers.adapters.encoders.point import NotSent, Pauses, Point, Sending, sentence
from workers.adapters.encoders.queued import FragmentQueue, Queued
from workers.adapters.encoders.rtmp import AUDIO, VIDEO, Publication, Target
from workers.adapters.encoders.tracks import Track
from workers.adapters.outbound_http import GuardedClient
from workers.ports import EncoderFailed, OutboundFailed, OutboundRefused

STUCK: Final = 10.0
_OVERHEAD: Final = 250
"""Bytes of memory for each tag, beside its media."""
PORTS: Final = {"rtmp": 1935, "rtmps": 443}


class RtmpPoint(Point):
    """Raises `EncoderFailed` for a URL without an application and a key."""

    def __init__(self, plan: PointPlan, sending: Sending, *, client: GuardedClient) -> None:
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

    def take_fragment(self, track: Track, fragment: Fragment) -> None:
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
                why = f"It took nothing for {STUCK:g} s."
            except (OSError, EOFError):
                why = "It closed the connection."
            else:
                return
            self.record.refused(why)
            await pauses.wait()

    async def _published(self, pauses: Pauses) -> None:
        """One connection, until the stream is over."""
        self.record.allowed()
        parts = urlsplit(self.record.plan.url)
        scheme = parts.scheme.lower()
        reader, writer = await self._client.connect(parts.netloc, port=parts.port or PORTS[scheme], secure=scheme == "rtmps")
        publication = Publication(reader, writer)
        watching: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(STUCK):
                await publication.publish(self._target)
            watching = start_task(self._watched(publication), what="answers of a publishing point")
            await self._send_all(publication, watching, pauses=pauses)
            async with asyncio.timeout(STUCK):
                await publication.end(self._target.key)
        finally:
            if watching is not None:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
            writer.transport.abort() if not self._over else writer.close()

    async def _watched(self, publication: Publication) -> None:
        with suppress(NotSent, OSError, EOFError):
            await publication.watch()

    async def _send_all(self, publication: Publication, watching: asyncio.Task[None], *, pauses: Pauses) -> None:
        self._queue.to_key_frame()
        for track in self._tracks:
            await self._send(publication, header_tag(track), kind=kind_of(track), time=0)
        order = Interleaved(self._tracks)
        while (queued := await self._queue.next()) is not None:
            if watching.done():
                raise NotSent("It closed the connection.")
            for time, kind, data in order.add(queued):
                await self._send(publication, data, kind=kind, time=time)
            self._queue.done(queued)
            self.record.took()
            pauses.reset()
        self._over = True
        for time, kind, data in order.rest():
            await self._send(publication, data, kind=kind, time=time)

    async def _send(self, publication: Publication, data: bytes, *, kind: int, time: int) -> None:
        self.record.allowed()
        async with asyncio.timeout(STUCK):
            await publication.send(kind, data, time=time)
        self.record.bytes += len(data)

    def _dropped(self) -> None:
        self.record.dropped += 1


Tag = tuple[int, int, bytes]
"""Time in milliseconds, kind, and data."""


class Interleaved:
    """Tags of all tracks in the order of their times: each fragment holds a part of a second of one track. The first key frame has
    the time 0, and what is before it is left out."""

    def __init__(self, tracks: Sequence[Track]) -> None:
        self._known = {track.name: float("-inf") for track in tracks}
        self._zero: float | None = None
        self._heap: list[tuple[float, int, int, bytes]] = []
        self._count = 0
        self.held = 0
        """Bytes of memory of what waits for another track."""

    def add(self, queued: Queued) -> Iterator[Tag]:
        """Those that nothing can come before any more."""
        track, fragment = queued.track, queued.fragment
        if self._zero is None:
            if not (track.plan.video and fragment.key):
                return
            self._zero = queued.start
        for time, data in _tags(track, fragment):
            if time >= self._zero:
                self._count += 1
                heapq.heappush(self._heap, (time, self._count, kind_of(track), data))
                self.held += _OVERHEAD + len(data)
        self._known[track.name] = (fragment.time + fragment.duration) / track.header.timescale
        yield from self._until(min(self._known.values()))

    def rest(self) -> Iterator[Tag]:
        yield from self._until(float("inf"))

    def _until(self, time: float) -> Iterator[Tag]:
        while self._heap and self._heap[0][0] < time:
            at, _, kind, data = heapq.heappop(self._heap)
            self.held -= _OVERHEAD + len(data)
            yield round((at - (self._zero or 0.0)) * 1000), kind, data


def _tags(track: Track, fragment: Fragment) -> Iterator[tuple[float, bytes]]:
    """Time in seconds, and the body of a tag (Adobe Flash Video File Format, E.4.2 and E.4.3)."""
    at, time, scale = fragment.media, fragment.time, track.header.timescale
    for sample in fragment.samples:
        media = fragment.data[at : at + sample.size]
        if track.plan.video:
            shift = round(sample.shift * 1000 / scale) & 0xFFFFFF
            yield time / scale, bytes([0x17 if sample.key else 0x27, 1]) + shift.to_bytes(3) + media
        else:
            yield time / scale, b"\xaf\1" + media
        at, time = at + sample.size, time + sample.duration


def header_tag(track: Track) -> bytes:
    return (b"\x17\0\0\0\0" if track.plan.video else b"\xaf\0") + track.header.configuration


def kind_of(track: Track) -> int:
    return VIDEO if track.plan.video else AUDIO


def target_of(plan: PointPlan) -> Target:
    """Raises `EncoderFailed`."""
    parts = urlsplit(plan.url)
    application, _, key = parts.path.strip("/").rpartition("/")
    if not application or not key or "@" in parts.netloc:
        raise EncoderFailed(f"The URL of the publishing point {plan.index} must be like rtmp://host/application/key.")
    query = f"?{parts.query}" if parts.query else ""
    return Target(f"{parts.scheme.lower()}://{parts.netloc}", application, f"{key}{query}")

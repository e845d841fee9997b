"""A publishing point that takes RTMP or RTMPS: the rendition with the highest bitrate and the first sound, as FLV tags."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from urllib.parse import urlsplit

from domain.channel.encoding import PointPlan
from projections.kernel.background_task import start_task
from workers.adapters.encoders.flv_tags import LATE, TagInterleaver, header_tag, kind_of
from workers.adapters.encoders.fragment_queue import FragmentQueue
from workers.adapters.encoders.point import NotSent, Pauses, Point, Sending, sentence
from workers.adapters.encoders.rtmp import PORTS, STUCK, RtmpPublication, RtmpTarget
from workers.adapters.encoders.tracks import Track
from workers.media.cmaf import CmafFragment
from workers.ports.encoders import EncoderFailed
from workers.ports.outbound import OutboundConnections, OutboundFailed, OutboundRefused


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
        order = TagInterleaver(self._tracks, late=LATE)
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


def target_of(plan: PointPlan) -> RtmpTarget:
    """Return the destination of a plan. Raises `EncoderFailed`."""
    parts = urlsplit(plan.url)
    application, _, key = parts.path.strip("/").rpartition("/")
    if not application or not key or "@" in parts.netloc:
        raise EncoderFailed(f"The URL of the publishing point {plan.index} must be like rtmp://host/application/key.")
    query = f"?{parts.query}" if parts.query else ""
    return RtmpTarget(f"{parts.scheme.lower()}://{parts.netloc}", application, f"{key}{query}")

"""A publishing point that takes CMAF by long HTTP POSTs (DASH-IF Live Media Ingest, interface 1): one request for each track, which
lasts as long as the session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from domain.channel.encoding import PointPlan
from projections.kernel.background_task import start_task
from workers.adapters.encoders.fragment_queue import FragmentQueue
from workers.adapters.encoders.point import NotSent, Pauses, Point, Sending, refusal, sentence
from workers.adapters.encoders.tracks import Track
from workers.media.cmaf import CmafFragment
from workers.ports.outbound import OutboundConnections, OutboundFailed, OutboundRefused

STUCK: Final = 10.0
"""Seconds after which a connection that accepts no data is given up."""
_END: Final = (8).to_bytes(4) + b"mfra"
"""An empty random access box, which ends the track."""
_KINDS: Final = {True: ("cmfv", "video/mp4"), False: ("cmfa", "audio/mp4")}


class CmafPoint(Point):
    """A publishing point with one task and one connection for each track."""

    def __init__(self, plan: PointPlan, sending: Sending, *, client: OutboundConnections) -> None:
        super().__init__(plan, sending)
        self._client = client
        self._senders: dict[str, _TrackSender] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, tracks: Sequence[Track]) -> None:
        self._senders = {track.name: _TrackSender(track, self, client=self._client) for track in tracks}
        self._tasks = [start_task(each.run(), what="publishing point") for each in self._senders.values()]

    def take_fragment(self, track: Track, fragment: CmafFragment) -> None:
        self._senders[track.name].queue.put(track, fragment)

    async def finish(self, *, final: bool) -> None:
        for sender in self._senders.values():
            sender.final = final
            sender.queue.end()
        await asyncio.gather(*self._tasks)

    async def abort(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _TrackSender:
    def __init__(self, track: Track, point: CmafPoint, *, client: OutboundConnections) -> None:
        suffix, self._type = _KINDS[track.plan.video]
        parts = urlsplit(point.record.plan.url)
        self._url = urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/Streams({track.name}.{suffix})"))
        self._track = track
        self._record = point.record
        self._client = client
        self._over = False
        self.queue = FragmentQueue(self._dropped)
        self.final = False

    async def run(self) -> None:
        pauses = Pauses()
        while not self._over:
            try:
                await self._post(pauses)
            except (NotSent, OutboundRefused, OutboundFailed) as fault:
                self._record.refused(sentence(fault))
                await pauses.wait()

    async def _post(self, pauses: Pauses) -> None:
        """Send over one connection until the track is over or the point ends the connection. Raises `NotSent`, `OutboundRefused` or
        `OutboundFailed`."""
        await self.queue.next()
        self._record.allowed()
        headers = self._record.headers(self._url) | {"Content-Type": self._type}
        limit = asyncio.timeout(STUCK)
        try:
            async with limit:
                reply = await self._client.send("POST", self._url, pieces=self._body(limit, pauses), headers=headers)
        except TimeoutError:
            raise NotSent(f"It accepted no data for {STUCK:g} s.") from None
        if not 200 <= reply.status < 300:
            raise NotSent(refusal(reply.status))
        if not self._over:
            raise NotSent("It ended the request.")

    async def _body(self, limit: asyncio.Timeout, pauses: Pauses) -> AsyncIterator[bytes]:
        """Yield the body in pieces. The client asks for a piece when it has sent the one before, so each request for a piece
        restarts the limit."""
        async for piece in self._record.pieces([self._track.header.data]):
            yield piece
        self.queue.to_key_frame()
        while True:
            limit.reschedule(None)
            if (queued := await self.queue.next()) is None:
                break
            limit.reschedule(asyncio.get_running_loop().time() + STUCK)
            async for piece in self._record.pieces([queued.fragment.data]):
                yield piece
            self.queue.done(queued)
            self._record.took()
            pauses.reset()
        limit.reschedule(asyncio.get_running_loop().time() + STUCK)
        self._over = True
        if not self.final:
            raise NotSent("A further session follows.")  # a body with a regular end ends the track
        async for piece in self._record.pieces([_END]):
            yield piece

    def _dropped(self) -> None:
        self._record.dropped += 1

"""A publishing point that takes HLS by HTTP PUT: headers, segments and playlists, with a separate task for each track."""

from __future__ import annotations

import asyncio
import posixpath
from collections import deque
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from domain.channel.encoder_settings import DVR
from domain.channel.encoding import PointPlan
from projections.kernel.background_task import start_task
from workers.adapters.encoders.playlists import MediaPlaylist, master
from workers.adapters.encoders.point import QUEUED, NotSent, Pauses, Point, Sending, refusal, sentence
from workers.adapters.encoders.tracks import Segment, Track
from workers.ports.outbound import OutboundConnections, OutboundFailed, OutboundRefused

_FEWEST: Final = 3
_SLOWEST: Final = 3.0
"""The time limit for a segment to be sent, as a multiple of its length."""
_LEAST_SECONDS: Final = 8.0
_TYPES: Final = {
    "m3u8": "application/vnd.apple.mpegurl",
    "mp4": "video/mp4",
    "m4s": "video/iso.segment",
}


class HlsPoint(Point):
    """A publishing point for HLS. `client` sends; `url` of the plan is a folder, or the URL of the multivariant playlist."""

    def __init__(self, plan: PointPlan, sending: Sending, *, client: OutboundConnections) -> None:
        super().__init__(plan, sending)
        self._place = PointUrls(plan.url)
        self._client = client
        self._tracks: Sequence[Track] = ()
        self._senders: dict[str, _TrackSender] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._master_sent = False

    def begin(self, tracks: Sequence[Track]) -> None:
        self._tracks = tracks
        window = self._window()
        self._senders = {track.name: _TrackSender(track, self, window=window) for track in tracks}
        self._tasks = [start_task(each.run(), what="publishing point") for each in self._senders.values()]

    def take_segment(self, track: Track, segment: Segment) -> None:
        self._senders[track.name].take(segment)

    async def finish(self, *, final: bool) -> None:
        for sender in self._senders.values():
            sender.end(final=final)
        await asyncio.gather(*self._tasks)

    async def abort(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def put(self, name: str, data: Sequence[bytes]) -> None:
        """Put a file on the point. Raises `NotSent`, `OutboundRefused` or `OutboundFailed`."""
        self.record.allowed()
        url = self._place.url(name)
        headers = self.record.headers(url) | {"Content-Type": _TYPES[name.rpartition(".")[2]]}
        reply = await self._client.send(
            "PUT",
            url,
            pieces=self.record.pieces(data),
            size=sum(map(len, data)),
            headers=headers,
            seconds=max(_LEAST_SECONDS, _SLOWEST * self.record.sending.segment),
        )
        if not 200 <= reply.status < 300:
            raise NotSent(refusal(reply.status))

    async def delete(self, name: str) -> None:
        self.record.allowed()
        url = self._place.url(name)
        await self._client.request("DELETE", url, headers=self.record.headers(url), seconds=_LEAST_SECONDS)

    async def publish_master(self) -> None:
        """Send the multivariant playlist, once, as soon as every track in it was sent."""
        if not self._master_sent and all(sender.sent for sender in self._senders.values()):
            await self.put(self._place.master, [master(self._tracks)])
            self._master_sent = True

    def _window(self) -> float:
        """Return how many seconds the playlists of this point reach back. The built-in origin makes the window itself from
        everything that it has received, so its playlists list only the newest segments."""
        plan, sending = self.record.plan, self.record.sending
        window = plan.dvr_length or sending.window
        return min(window, DVR) if sending.built_in(plan.url) else window

    def forget(self) -> None:
        """Send the multivariant playlist again, because the point may have lost all its files."""
        self._master_sent = False


class PointUrls:
    """The URLs of the files of a point."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        folder, name = posixpath.split(self._parts.path)
        named = name.endswith(".m3u8")
        self.master = name if named else "master.m3u8"
        self._folder = folder if named else self._parts.path.rstrip("/")

    def url(self, name: str) -> str:
        return urlunsplit(self._parts._replace(path=f"{self._folder}/{name}"))


class _TrackSender:
    """Sends the segments of one track one after the other."""

    def __init__(self, track: Track, point: HlsPoint, *, window: float) -> None:
        sending = point.record.sending
        self._track = track
        self._point = point
        self._record = point.record
        self._playlist = MediaPlaylist(track.name, session=sending.session, segment=sending.segment, window=window)
        self._queue: deque[Segment] = deque()
        self._most = max(_FEWEST, round(QUEUED / sending.segment))
        self._more = asyncio.Event()
        self._over = self._final = False
        self.sent = False
        """True if the point has the header and a playlist of the track."""

    def take(self, segment: Segment) -> None:
        self._queue.append(segment)
        if len(self._queue) > self._most:
            self._queue.popleft()
            self._record.dropped += 1
        self._more.set()

    def end(self, *, final: bool) -> None:
        self._over, self._final = True, final
        self._more.set()

    async def run(self) -> None:
        pauses = Pauses()
        while not self._over or self._queue or self._final:
            await self._more.wait()
            self._more.clear()
            while self._queue or self._final:
                try:
                    await self._turn()
                    pauses.reset()
                except (NotSent, OutboundRefused, OutboundFailed) as fault:
                    self._failed(sentence(fault))
                    await pauses.wait()

    async def _turn(self) -> None:
        """Send the next segment, or the end of the playlist after the last one."""
        segment = self._queue[0] if self._queue else None
        if not self.sent and (segment is not None or self._playlist.begun):
            await self._point.put(self._playlist.header, [self._track.header.data])
        if segment is None:
            self._playlist.ended = True
            if self._playlist.begun:
                await self._list(())
            self._final = False
            return
        await self._point.put(self._playlist.uri(segment), segment.data)
        if self._queue and self._queue[0] is segment:
            self._queue.popleft()
        else:
            self._record.dropped -= 1  # it was sent while it was dropped from the queue
        gone = self._playlist.add(segment)
        await self._list(gone)

    async def _list(self, gone: Sequence[str]) -> None:
        await self._point.put(self._playlist.name, [self._playlist.text()])
        self.sent = True
        await self._point.publish_master()
        self._record.took()
        if self._record.sending.delete_segments:
            for uri in gone:
                await self._point.delete(uri)

    def _failed(self, why: str) -> None:
        self.sent = False
        self._point.forget()
        self._record.refused(why)

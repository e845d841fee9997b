"""The live stream of an Event, read from HLS: one picture and one sound, as CMAF fragments.

CMAF segments with one track are used directly. All others, such as MPEG-TS or segments with both picture and sound, are split by
ffmpeg, which copies them and receives no address.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from domain.event.values import AudioInput
from projections.kernel.background_task import start_task
from workers.adapters.encoders.fragment_queue import QueuedFragment
from workers.adapters.encoders.hls_reading import (
    SECONDS,
    NotRead,
    ReadSound,
    best_variant,
    media_playlist,
    read_playlist,
    sounds_in,
)
from workers.adapters.encoders.tracks import Track, TrackPlan
from workers.adapters.pushes.stream_copy import Copying
from workers.adapters.pushes.track_feed import TrackFeed
from workers.media.cmaf import CmafHeader, header
from workers.media.errors import Unreadable
from workers.ports.outbound import OutboundConnections, OutboundFailed, OutboundRefused
from workers.ports.pushes import PushedSound, PushFailed

PICTURE: Final = TrackPlan("v0", 0)
SOUND: Final = TrackPlan("a0", 0, audio=AudioInput(id="0"))
SILENT: Final = 20.0
"""Seconds without a fragment after which the stream counts as failed."""
_LIVE_EDGE: Final = 3
_LARGEST_HEADER: Final = 1_048_576
_WAITING: Final = 64
"""The limit of fragments that are read ahead."""
_MOST_AHEAD: Final = 96 * 1024 * 1024
"""The limit of fragments that are read ahead in bytes. A single larger fragment is accepted."""


@dataclass(frozen=True, slots=True)
class StreamPlaylists:
    """The playlists of a stream. `sound` is None if the picture's segments contain the sound; `place` is then its index."""

    picture: str = field(repr=False)
    sound: str | None = field(repr=False)
    place: int = 0


class OpenStream:
    """The fragments of both tracks. Those of each track are in order."""

    def __init__(self, tracks: Sequence[Track], *, silent: float) -> None:
        self.tracks = tracks
        self._silent = silent
        self._waiting: asyncio.Queue[QueuedFragment | PushFailed] = asyncio.Queue(_WAITING)
        self._buffered = 0
        self._room = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def read(self, *sources: Awaitable[None]) -> None:
        """Start the sources. Each puts fragments until it is over or has failed."""
        self._tasks = [start_task(self._run_source(source), what="source of a push") for source in sources]

    async def put(self, queued: QueuedFragment) -> None:
        """Append a fragment; wait until there is room."""
        while self._buffered and self._buffered + queued.weight > _MOST_AHEAD:
            self._room.clear()
            await self._room.wait()
        self._buffered += queued.weight
        await self._waiting.put(queued)

    async def next(self) -> QueuedFragment:
        """Return the next fragment. Raises `PushFailed`, also at the end of the stream."""
        try:
            async with asyncio.timeout(self._silent):
                queued = await self._waiting.get()
        except TimeoutError:
            raise PushFailed("source", f"The stream of the Event delivered nothing for {self._silent:g} s.") from None
        if isinstance(queued, PushFailed):
            raise queued
        self._buffered -= queued.weight
        self._room.set()
        return queued

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run_source(self, source: Awaitable[None]) -> None:
        try:
            await source
            end = PushFailed("source", "The stream of the Event has ended.")
        except PushFailed as fault:
            end = fault
        except (NotRead, OutboundFailed, OutboundRefused) as fault:
            end = PushFailed("source", f"The stream of the Event failed: {fault}")
        except Unreadable as fault:
            end = PushFailed("source", f"The stream of the Event cannot be read: {fault}.")
        await self._waiting.put(end)


@dataclass(frozen=True)
class StreamOpener:
    """Opens streams. `copying` uses ffmpeg."""

    client: OutboundConnections
    copying: Copying
    silent: float = SILENT

    @asynccontextmanager
    async def open(self, urls: Sequence[str], sound: PushedSound) -> AsyncIterator[OpenStream]:
        """Open the stream at the first address that can be read. Raises `PushFailed`."""
        stream = await self._first(urls, sound)
        try:
            yield stream
        finally:
            await stream.close()

    async def _first(self, urls: Sequence[str], sound: PushedSound) -> OpenStream:
        why = "The Event is not on the air, or its channel has no HLS address."
        for url in urls:
            try:
                playlists = await self._playlists(url, sound)
                headers = [await self._header(each) for each in (playlists.picture, playlists.sound) if each is not None]
                if all(headers):
                    return self._open_tracks(playlists, [header for header in headers if header is not None])
                if playlists.sound is not None:
                    raise NotRead("its sound is in separate segments that are not CMAF.")
                return await self._open_copy(playlists)
            except (NotRead, Unreadable, OutboundFailed, OutboundRefused) as fault:
                why = f"The stream of the Event cannot be read: {fault}"
        raise PushFailed("source", why)

    def _open_tracks(self, playlists: StreamPlaylists, headers: Sequence[CmafHeader]) -> OpenStream:
        tracks = [Track(plan, header) for plan, header in zip((PICTURE, SOUND), headers, strict=False)]
        stream = OpenStream(tracks, silent=self.silent)
        urls = [each for each in (playlists.picture, playlists.sound) if each is not None]
        stream.read(*(self._follow(TrackFeed(track), url, stream) for track, url in zip(tracks, urls, strict=True)))
        return stream

    async def _open_copy(self, playlists: StreamPlaylists) -> OpenStream:
        copy = await self.copying.start(self.client, playlists.picture, place=playlists.place, plans=(PICTURE, SOUND))
        stream = OpenStream(copy.tracks, silent=self.silent)
        stream.read(copy.read(stream.put))
        return stream

    async def _playlists(self, url: str, sound: PushedSound) -> StreamPlaylists:
        playlist = await read_playlist(self.client, url)
        variant = best_variant(playlist, url)
        if variant is None:
            return StreamPlaylists(url, None, sound.place)
        sounds = [each for each in sounds_in(playlist, url) if each.group == variant.group]
        chosen = _chosen(sounds, sound)
        if chosen is None:
            return StreamPlaylists(variant.url, None, sound.place)
        return StreamPlaylists(variant.url, chosen.url or None, sounds.index(chosen))

    async def _header(self, url: str) -> CmafHeader | None:
        """Return the header of the newest segment, if it is CMAF and has one track."""
        segments = media_playlist(await read_playlist(self.client, url), url).segments
        if not segments:
            raise NotRead("it has no segments yet.")
        if not segments[-1].header:
            return None
        body = bytearray()
        try:
            async with asyncio.timeout(SECONDS), aclosing(self.client.stream(segments[-1].header)) as pieces:
                async for piece in pieces:
                    body += piece
                    if len(body) > _LARGEST_HEADER:
                        raise NotRead("its header is too long.")
        except TimeoutError:
            raise NotRead(f"its header did not come within {SECONDS:g} s.") from None
        return header(bytes(body)) if body.count(b"trak") == 1 else None

    async def _follow(self, feed: TrackFeed, url: str, stream: OpenStream, /) -> None:
        """Read the segments of one track, beginning near the live edge. A stream that starts over with another header is a
        different stream."""
        last, first_header = -1, ""
        while True:
            playlist = media_playlist(await read_playlist(self.client, url), url)
            new = [each for each in playlist.segments if each.number > last]
            for segment in new if last >= 0 else new[-_LIVE_EDGE:]:
                if segment.header != (first_header or segment.header):
                    raise PushFailed("source", "The stream of the Event started over.")
                first_header, last = segment.header, segment.number
                async with aclosing(self.client.stream(segment.url)) as pieces:
                    async for piece in pieces:
                        for queued in feed.feed(piece):
                            await stream.put(queued)
            if playlist.ended:
                return
            await asyncio.sleep(playlist.target / 2)


def _chosen(sounds: Sequence[ReadSound], wanted: PushedSound) -> ReadSound | None:
    if not sounds:
        return None
    names = [name.casefold() for name in wanted.names if name]
    by_name = next((each for each in sounds if each.name.casefold() in names), None)
    by_language = next(
        (each for each in sounds if wanted.language and each.language.casefold() == wanted.language.casefold()), None
    )
    return by_name or by_language or sounds[min(wanted.place, len(sounds) - 1)]

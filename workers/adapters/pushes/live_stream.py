"""The live stream of an Event, read from HLS: one picture and one sound, as fragments of CMAF.

Segments of CMAF with one track are taken as they are. All others, of MPEG-TS or with picture and sound in one, are taken apart by
ffmpeg, which copies them and is given no address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from domain.media_event.values import AudioInput
from projections.kernel.background_task import start_task
from workers.adapters.encoders.hls_reading import (
    SECONDS,
    NotRead,
    ReadSound,
    best_variant,
    media_playlist,
    read_playlist,
    sounds_in,
)
from workers.adapters.encoders.queued import Queued
from workers.adapters.encoders.tracks import Track, TrackPlan
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.pushes.copied import Copying
from workers.adapters.pushes.track_feed import TrackFeed
from workers.media.cmaf import Header, header
from workers.media.errors import Unreadable
from workers.ports import OutboundFailed, OutboundRefused
from workers.push_ports import PushFailed, Sound

PICTURE: Final = TrackPlan("v0", 0)
SOUND: Final = TrackPlan("a0", 0, audio=AudioInput(id="0"))
SILENT: Final = 20.0
"""Seconds without a fragment after which the stream counts as broken off."""
_LIVE_EDGE: Final = 3
_LARGEST_HEADER: Final = 1_048_576
_WAITING: Final = 64
"""Fragments that are read ahead of what is sent."""
_MOST_AHEAD: Final = 96 * 1024 * 1024
"""Bytes of them, or one fragment."""


@dataclass(frozen=True, slots=True)
class Playlists:
    """Those of a stream. `sound` is None where the picture has it in its own segments; `place` is then which one it is."""

    picture: str = field(repr=False)
    sound: str | None = field(repr=False)
    place: int = 0


class OpenStream:
    """Fragments of both tracks, those of each in their order."""

    def __init__(self, tracks: Sequence[Track], *, silent: float) -> None:
        self.tracks = tracks
        self._silent = silent
        self._waiting: asyncio.Queue[Queued | PushFailed] = asyncio.Queue(_WAITING)
        self._held = 0
        self._room = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def read(self, *sources: Awaitable[None]) -> None:
        """Each puts fragments until it is over, or broken."""
        self._tasks = [start_task(self._watched(source), what="source of a push") for source in sources]

    async def put(self, queued: Queued) -> None:
        """Waits for room."""
        while self._held and self._held + queued.weight > _MOST_AHEAD:
            self._room.clear()
            await self._room.wait()
        self._held += queued.weight
        await self._waiting.put(queued)

    async def next(self) -> Queued:
        """Raises `PushFailed`, also at the end."""
        try:
            async with asyncio.timeout(self._silent):
                found = await self._waiting.get()
        except TimeoutError:
            raise PushFailed("source", f"The stream of the Event brought nothing for {self._silent:g} s.") from None
        if isinstance(found, PushFailed):
            raise found
        self._held -= found.weight
        self._room.set()
        return found

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _watched(self, source: Awaitable[None]) -> None:
        try:
            await source
            end = PushFailed("source", "The stream of the Event is over.")
        except PushFailed as fault:
            end = fault
        except (NotRead, OutboundFailed, OutboundRefused) as fault:
            end = PushFailed("source", f"The stream of the Event broke off: {fault}")
        except Unreadable as fault:
            end = PushFailed("source", f"The stream of the Event cannot be read: {fault}.")
        await self._waiting.put(end)


@dataclass(frozen=True)
class LiveStreams:
    """Opens streams. `copying` is ffmpeg."""

    client: GuardedClient
    copying: Copying
    silent: float = SILENT

    @asynccontextmanager
    async def opened(self, urls: Sequence[str], sound: Sound) -> AsyncIterator[OpenStream]:
        """Of the first address that can be read. Raises `PushFailed`."""
        stream = await self._first(urls, sound)
        try:
            yield stream
        finally:
            await stream.close()

    async def _first(self, urls: Sequence[str], sound: Sound) -> OpenStream:
        why = "The Event is not on the air, or its channel has no HLS address."
        for url in urls:
            try:
                found = await self._playlists(url, sound)
                headers = [await self._header(each) for each in (found.picture, found.sound) if each is not None]
                if all(headers):
                    return self._apart(found, [one for one in headers if one is not None])
                if found.sound is not None:
                    raise NotRead("its sound is in segments of its own that are not CMAF.")
                return await self._copied(found)
            except (NotRead, Unreadable, OutboundFailed, OutboundRefused) as fault:
                why = f"The stream of the Event cannot be read: {fault}"
        raise PushFailed("source", why)

    def _apart(self, found: Playlists, headers: Sequence[Header]) -> OpenStream:
        tracks = [Track(plan, one) for plan, one in zip((PICTURE, SOUND), headers, strict=False)]
        stream = OpenStream(tracks, silent=self.silent)
        urls = [each for each in (found.picture, found.sound) if each is not None]
        stream.read(*(self._follow(TrackFeed(track), url, stream) for track, url in zip(tracks, urls, strict=True)))
        return stream

    async def _copied(self, found: Playlists) -> OpenStream:
        copy = await self.copying.started(self.client, found.picture, place=found.place, plans=(PICTURE, SOUND))
        stream = OpenStream(copy.tracks, silent=self.silent)
        stream.read(copy.read(stream.put))
        return stream

    async def _playlists(self, url: str, sound: Sound) -> Playlists:
        found = await read_playlist(self.client, url)
        variant = best_variant(found, url)
        if variant is None:
            return Playlists(url, None, sound.place)
        sounds = [each for each in sounds_in(found, url) if each.group == variant.group]
        chosen = _chosen(sounds, sound)
        if chosen is None:
            return Playlists(variant.url, None, sound.place)
        return Playlists(variant.url, chosen.url or None, sounds.index(chosen))

    async def _header(self, url: str) -> Header | None:
        """That of the newest segment, if it is of CMAF and of one track."""
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
        """The segments of one track, from near the live edge on. One that begins anew, with another header, is another stream."""
        last, known = -1, ""
        while True:
            playlist = media_playlist(await read_playlist(self.client, url), url)
            new = [each for each in playlist.segments if each.number > last]
            for segment in new if last >= 0 else new[-_LIVE_EDGE:]:
                if segment.header != (known or segment.header):
                    raise PushFailed("source", "The stream of the Event began anew.")
                known, last = segment.header, segment.number
                async with aclosing(self.client.stream(segment.url)) as pieces:
                    async for piece in pieces:
                        for queued in feed.feed(piece):
                            await stream.put(queued)
            if playlist.ended:
                return
            await asyncio.sleep(playlist.target / 2)


def _chosen(sounds: Sequence[ReadSound], wanted: Sound) -> ReadSound | None:
    if not sounds:
        return None
    names = [name.casefold() for name in wanted.names if name]
    named = next((each for each in sounds if each.name.casefold() in names), None)
    spoken = next((each for each in sounds if wanted.language and each.language.casefold() == wanted.language.casefold()), None)
    return named or spoken or sounds[min(wanted.place, len(sounds) - 1)]

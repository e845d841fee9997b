"""A stream that is fetched for an encode: one body over HTTP, or the segments of an HLS playlist one after the other.

ffmpeg would follow any address in a playlist. So the playlist is read here, and each address passes the outbound client.
"""

from __future__ import annotations

import asyncio
from asyncio import StreamWriter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

from workers.adapters.encoders.hls_reading import NotRead, best_variant, media_playlist, read_playlist, sounds_in
from workers.ports.outbound import OutboundConnections, OutboundFailed, OutboundRefused

_HEAD: Final = 524_288
_HEAD_SECONDS: Final = 4.0
_FIRST_SECONDS: Final = 12.0
"""The limit for the first piece, in seconds. It is longer than the outbound client waits for a response, so that the client reports
its own timeout."""
_LIVE_EDGE: Final = 3


class FetchedStream:
    """A fetched stream. Call `head` first, then `feed` or `close`."""

    def __init__(self, client: OutboundConnections, url: str, *, first: float = _FIRST_SECONDS) -> None:
        self._client = client
        self._url = url
        self._first = first
        self._pieces: AsyncGenerator[bytes, None] = self._all()
        self._head = b""
        self._next: asyncio.Future[bytes] | None = None

    async def head(self) -> bytes:
        """Return the beginning of the stream, as much as arrives soon. Raises `OutboundRefused`, `OutboundFailed` or `NotRead`."""
        try:
            async with asyncio.timeout(self._first):
                self._head = await self._following()
        except TimeoutError:
            raise NotRead("it has no segments yet.") from None
        deadline = asyncio.get_running_loop().time() + _HEAD_SECONDS
        while 0 < len(self._head) < _HEAD:
            self._next = self._next or asyncio.ensure_future(self._following())
            done, _ = await asyncio.wait([self._next], timeout=deadline - asyncio.get_running_loop().time())
            if not done or self._next.exception() is not None or not (piece := self._next.result()):
                break  # `feed` handles the reason
            self._head += piece
            self._next = None
        return self._head

    async def feed(self, writer: StreamWriter, *, until: Callable[[bytes], int | None] = lambda piece: None) -> str:
        """Write the stream to the process until either of them ends, or `until` returns the number of bytes of a piece that are
        still to be written. Return why the stream failed, empty if it did not."""
        try:
            piece, self._head = self._head, b""
            while piece:
                end = until(piece)
                writer.write(piece[:end])
                await writer.drain()
                if end is not None:
                    return ""
                piece = await (self._next or self._following())
                self._next = None
        except (OutboundRefused, OutboundFailed, NotRead) as fault:
            return str(fault)
        except ConnectionError:
            return ""
        finally:
            writer.close()
            await self.close()
        return ""

    async def close(self) -> None:
        if self._next is not None and not self._next.done():
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)
        await self._pieces.aclose()

    async def _following(self) -> bytes:
        """Return the next piece, empty at the end."""
        return await anext(self._pieces, b"")

    async def _all(self) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._client.stream(self._url)) as body:
            first = await anext(body, b"")
            if not first.lstrip(b"\xef\xbb\xbf").startswith(b"#EXTM3U"):
                yield first
                async for piece in body:
                    yield piece
                return
        async with aclosing(self._segments(await self._media_playlist())) as pieces:
            async for piece in pieces:
                yield piece

    async def _media_playlist(self) -> str:
        """Return the URL of the media playlist: the rendition with the highest bitrate if the playlist lists several."""
        playlist = await read_playlist(self._client, self._url)
        if any(sound.url for sound in sounds_in(playlist, self._url)):
            raise NotRead("its sound is in separate playlists, which cannot be read.")
        best = best_variant(playlist, self._url)
        return self._url if best is None else best.url

    async def _segments(self, url: str) -> AsyncGenerator[bytes, None]:
        last, header = -1, ""
        while True:
            playlist = media_playlist(await read_playlist(self._client, url), url)
            new = [each for each in playlist.segments if each.number > last]
            for segment in new if last >= 0 or playlist.ended else new[-_LIVE_EDGE:]:
                parts = [segment.url] if segment.header == header else [segment.header, segment.url]
                header = segment.header
                for part in parts:
                    async with aclosing(self._client.stream(part)) as pieces:
                        async for piece in pieces:
                            yield piece
                last = segment.number
            if playlist.ended:
                return
            await asyncio.sleep(playlist.target if new else playlist.target / 2)

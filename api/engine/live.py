"""A dashboard that many look at: one reader of the database for all who see the same. Issue 7, "Operators"."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from api.engine.listening import AWAY, BEAT, FULL, SILENCE, Seats, frame
from domain.kernel.errors import Unavailable
from projections.kernel.background import Background

_log = logging.getLogger(__name__)
_MOST_READERS: Final = 20
Read = Callable[[str | None], Awaitable[Any]]


class _Reader(Background):
    """Reads again and again what one client has, while anybody looks."""

    def __init__(self, read: Callable[[], Awaitable[Any]], *, pause: float) -> None:
        self._read = read
        self._pause = pause
        self._changed = asyncio.Event()
        self.frame = b""
        self.lookers = 0

    async def beyond(self, seen: bytes) -> bytes:
        """What is to be seen when it is another than `seen`; empty when nothing changes for a while."""
        changed = self._changed
        if self.frame == seen:
            with suppress(TimeoutError):
                async with asyncio.timeout(SILENCE):
                    await changed.wait()
        return b"" if self.frame == seen else self.frame

    async def _run(self) -> None:
        while True:
            try:
                self._show(frame(await self._read()))
            except Unavailable:
                self._show(AWAY)
            except Exception:
                _log.exception("the dashboard could not be read; it will be tried again")
            await asyncio.sleep(self._pause)

    def _show(self, news: bytes) -> None:
        if news != self.frame:
            self.frame = news
            self._changed.set()
            self._changed = asyncio.Event()


class LiveBoards:
    """`read` gives what is shown of one client, or (None) of all. `pause` is in seconds."""

    def __init__(self, read: Read, *, pause: float = 0.5) -> None:
        self._read = read
        self._pause = pause
        self._readers: dict[str | None, _Reader] = {}
        self.seats = Seats()

    @property
    def readers(self) -> int:
        return len(self._readers)

    async def frames(self, client: str | None) -> AsyncGenerator[bytes, None]:
        """For ever; the first at once. Who is slow misses what was in between, never the latest."""
        reader = self._readers.get(client)
        if reader is None:
            if len(self._readers) >= _MOST_READERS:
                yield FULL
                return
            reader = self._readers[client] = _Reader(lambda: self._read(client), pause=self._pause)
            await reader.start()
        reader.lookers += 1
        seen = b""
        try:
            while True:
                news = await reader.beyond(seen)
                seen = news or seen
                yield news or (AWAY if seen == AWAY else BEAT)
        finally:
            reader.lookers -= 1
            if not reader.lookers:
                del self._readers[client]
                await reader.stop()

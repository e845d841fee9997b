"""The live dashboard: one database poll per client, shared by all subscribers of its stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Any, ClassVar, Final

from api.http.seats import OwnSeats, Seats
from api.http.sse import AWAY, BEAT, FULL, SILENCE, SubscriberLimit, frame
from domain.kernel.errors import Unavailable
from projections.kernel.background_task import BackgroundTask

_MAX_READERS: Final = 20
_READERS: Final = "dashboard readers"
Read = Callable[[str | None], Awaitable[Any]]


class _Reader(BackgroundTask):
    """Polls the dashboard of one client while it has subscribers."""

    WHAT: ClassVar[str] = "dashboard"

    def __init__(self, read: Callable[[], Awaitable[Any]], *, pause: float) -> None:
        self._read = read
        self._pause = pause
        self._changed = asyncio.Event()
        self.frame = b""
        self.subscribers = 0

    async def next_frame(self, last: bytes) -> bytes:
        """The latest frame as soon as it differs from `last`; empty when nothing changes for a while."""
        changed = self._changed
        if self.frame == last:
            with suppress(TimeoutError):
                async with asyncio.timeout(SILENCE):
                    await changed.wait()
        return b"" if self.frame == last else self.frame

    async def _turn(self) -> None:
        try:
            self._publish(frame(await self._read()))
        except Unavailable:
            self._publish(AWAY)
        await asyncio.sleep(self._pause)

    def _publish(self, latest: bytes) -> None:
        if latest != self.frame:
            self.frame = latest
            self._changed.set()
            self._changed = asyncio.Event()


class DashboardBroadcast:
    """`read` reads the dashboard of one client, or (None) of all. `pause` is in seconds."""

    def __init__(self, read: Read, *, seats: Seats | None = None, pause: float = 0.5) -> None:
        self._read = read
        self._pause = pause
        self._readers: dict[str | None, _Reader] = {}
        self._seats = seats or OwnSeats()
        self.subscribers = SubscriberLimit("dashboard", self._seats)

    @property
    def readers(self) -> int:
        return len(self._readers)

    async def frames(self, client: str | None) -> AsyncGenerator[bytes, None]:
        """Without end; the first at once. A slow subscriber misses frames in between, never the latest."""
        reader = self._readers.get(client)
        if reader is None:
            if not await self._seats.take(_READERS, _MAX_READERS):
                yield FULL
                return
            reader = await self._reader(client)
        reader.subscribers += 1
        last = b""
        try:
            while True:
                latest = await reader.next_frame(last)
                last = latest or last
                yield latest or (AWAY if last == AWAY else BEAT)
        finally:
            reader.subscribers -= 1
            if not reader.subscribers:
                del self._readers[client]
                self._seats.leave(_READERS)
                await reader.stop()

    async def _reader(self, client: str | None) -> _Reader:
        """Uses a seat. Another subscriber may have started the same reader in the meantime."""
        if client in self._readers:
            self._seats.leave(_READERS)
            return self._readers[client]
        reader = self._readers[client] = _Reader(lambda: self._read(client), pause=self._pause)
        await reader.start()
        return reader

"""The live dashboard: one database poll per client, shared by all subscribers of its stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final

from api.engine.surface import Strangers
from api.guards.seats import Seats
from api.kernel.subscribers import AWAY, BEAT, FULL, SILENCE, SubscriberLimit, frame
from domain.kernel.errors import Unavailable
from domain.kernel.internal_addresses import InternalAddresses
from projections.kernel.background_task import BackgroundTask

_MAX_READERS: Final = 20
_MAX_READERS_WITHOUT_KEY: Final = 15
_READERS: Final = "dashboard readers"
NOBODY: Final = " "
"""A name that no client can have. Callers without a key that ask for any unknown client share one reader under it."""
Read = Callable[[str | None], Awaitable[Any]]
_Audience = tuple[str | None, bool]


class _Reader(BackgroundTask):
    """Polls the dashboard of one client while it has subscribers."""

    WHAT: ClassVar[str] = "dashboard"

    def __init__(self, read: Callable[[], Awaitable[Any]], *, pause: float) -> None:
        self._read = read
        self._pause = pause
        self._changed = asyncio.Event()
        self.frame = b""
        self.subscribers = 0
        self.seats: Sequence[str] = ()

    async def next_frame(self, last: bytes) -> bytes:
        """Return the latest frame as soon as it differs from `last`; return b"" if it does not change for `SILENCE` seconds."""
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
    """The readers of the dashboard and their subscribers. `read` reads the dashboard of one client, or of all clients if it is
    None. `pause` is in seconds."""

    def __init__(self, read: Read, *, strangers: Strangers | None = None, seats: Seats | None = None, pause: float = 0.5) -> None:
        self._read = read
        self._strangers = strangers or Strangers(InternalAddresses())
        self._pause = pause
        self._readers: dict[_Audience, _Reader] = {}
        self._seats = seats or Seats()
        self.subscribers = SubscriberLimit("dashboard", self._seats)

    @property
    def readers(self) -> int:
        return len(self._readers)

    async def frames(self, client: str | None, *, has_key: bool) -> AsyncGenerator[bytes, None]:
        """Yield frames without end, the first immediately. A slow subscriber misses intermediate frames but never the latest. With
        `has_key` the frames are not masked."""
        audience = (client, has_key)
        reader = self._readers.get(audience)
        if reader is None:
            limits = {} if has_key else {f"{_READERS}, without a key": _MAX_READERS_WITHOUT_KEY}
            seats = self._seats.take({**limits, _READERS: _MAX_READERS})
            if not seats:
                yield FULL
                return
            reader = await self._reader(audience, seats)
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
                del self._readers[audience]
                self._seats.leave(reader.seats)
                await reader.stop()

    async def _reader(self, audience: _Audience, seats: Sequence[str]) -> _Reader:
        """Return a new reader of an audience, which takes the seats."""
        client, has_key = audience

        async def read() -> Any:
            return await self._strangers.body(await self._read(client), in_full=has_key)

        reader = self._readers[audience] = _Reader(read, pause=self._pause)
        reader.seats = seats
        await reader.start()
        return reader

"""The head of the log as this process knows it: from its own appender, from NOTIFY of other processes, and by polling."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import ClassVar

from projections.kernel.background_task import BackgroundTask
from projections.kernel.database import Database
from projections.log.commit_notifier import CHANNEL
from projections.log.reader import head

LOOK = 0.25


class LogWatcher(BackgroundTask):
    """One per process, for all readers of the log. The appender calls `advance_to`, which never waits."""

    WHAT: ClassVar[str] = "listener to the log"
    PAUSE: ClassVar[float] = LOOK

    def __init__(self, database: Database) -> None:
        self._database = database
        self._grown = asyncio.Event()
        self.position = 0

    def advance_to(self, position: int) -> None:
        if position > self.position:
            self.position = position
            self._grown.set()
            self._grown = asyncio.Event()

    async def beyond(self, position: int) -> int:
        """The known head of the log. It is after `position`, unless the log got no events for a moment."""
        if self.position > position:
            return self.position
        grown = self._grown
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK):
                await grown.wait()
        if self.position <= position:
            self.advance_to(await head(self._database))
        return self.position

    async def _turn(self) -> None:
        connection = await self._database.connect("listener")
        try:
            await connection.execute(f"LISTEN {CHANNEL}".encode())
            async for notice in connection.notifies():
                self.advance_to(int(notice.payload))
        finally:
            await connection.close()

"""Tells the readers of the log that it may have grown: by the appender of this process, by NOTIFY of others, and by the clock.

What is told is only a reason to look. Anybody who may connect to the database can send a NOTIFY, and after a restore a position
that was true is not true any more. So readers take from here when to look, never what there is.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import ClassVar, Final

from projections.kernel.background_task import BackgroundTask
from projections.kernel.database import Database
from projections.log.commit_notifier import CHANNEL

LOOK: Final = 0.25
"""Seconds after which a reader that was told nothing looks all the same."""


class LogWatcher(BackgroundTask):
    """One per process, for all readers of the log. The appender calls `grew`, which never waits."""

    WHAT: ClassVar[str] = "listener to the log"
    PAUSE: ClassVar[float] = LOOK

    def __init__(self, database: Database) -> None:
        self._database = database
        self._told = asyncio.Event()
        self.signals = 0
        """How many signals there were. A reader keeps the number from before it looked."""

    def grew(self) -> None:
        self.signals += 1
        self._told.set()
        self._told = asyncio.Event()

    async def signal(self, seen: int) -> int:
        """Wait for a signal after the first `seen` ones, but no longer than `LOOK`. Returns how many there were by then."""
        if self.signals == seen:
            told = self._told
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await told.wait()
        return self.signals

    async def _turn(self) -> None:
        connection = await self._database.connect("listener", seconds=3.0)
        try:
            await connection.listen(CHANNEL)
            async for _ in connection.heard():
                self.grew()
        finally:
            await connection.close()

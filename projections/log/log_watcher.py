"""Tells the readers of the log that it may have grown: by the appender of this process, by NOTIFY of others, and by the clock.

What is told is only a reason to look. Anybody who may connect to the database can send a NOTIFY, and after a restore a position
that was true is not true any more. So readers take from here when to look, never what there is.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import ClassVar, Final

from projections.kernel.background_task import BackgroundTask
from projections.kernel.database import Database
from projections.log.commit_notifier import CHANNEL
from projections.log.reader import head

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
        self._look: asyncio.Task[int] | None = None
        self._looked_at = 0.0
        self._looked_after = -1

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

    async def ends_at(self, position: int) -> bool:
        """Whether the log ends there, so that a reader that has read up to it has nothing to do. One query answers all readers of
        the process: it counts until the next signal, and for no longer than `LOOK`."""
        if self._look is None or self._looked_after != self.signals or time.monotonic() - self._looked_at >= LOOK:
            self._looked_at, self._looked_after = time.monotonic(), self.signals
            self._look = asyncio.create_task(head(self._database), name="look at the end of the log")
            self._look.add_done_callback(self._forget_failed)
        return await asyncio.shield(self._look) == position

    def _forget_failed(self, look: asyncio.Task[int]) -> None:
        """Those who wait for it get its fault; nobody may be waiting any more."""
        if (look.cancelled() or look.exception()) and self._look is look:
            self._look = None

    async def stop(self) -> None:
        if self._look is not None:
            self._look.cancel()
        await super().stop()

    async def _turn(self) -> None:
        connection = await self._database.connect("listener", seconds=3.0)
        try:
            await connection.listen(CHANNEL)
            async for _ in connection.heard():
                self.grew()
        finally:
            await connection.close()

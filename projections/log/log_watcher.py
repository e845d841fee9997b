"""Signals to the readers of the log that it may have grown: from the appender of this process, from NOTIFY of others, and at
intervals.

A signal is only a reason to look. Anyone who can connect to the database can send a NOTIFY, and after a restore an announced
position may not be valid any more. So readers learn from here when to look, never what there is.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import ClassVar, Final

from projections.kernel.background_task import BackgroundTask
from projections.kernel.database.database import Database
from projections.log.commit_notifier import CHANNEL
from projections.log.reader import head

LOOK: Final = 0.25
"""The number of seconds after which a reader without a signal looks anyway."""
LOOK_LISTENING: Final = 1.0
"""The number of seconds while the process listens to notifications. A notification is missed only if its sender dies before it
sends it."""


class LogWatcher(BackgroundTask):
    """The source of signals for all readers of the log in a process. The appender calls `grew`, which never waits."""

    WHAT: ClassVar[str] = "listener to the log"
    PAUSE: ClassVar[float] = LOOK

    def __init__(self, database: Database) -> None:
        self._database = database
        self._grown = asyncio.Event()
        self.signals = 0
        """The number of signals so far. A reader remembers the number from before it looked."""
        self._look: asyncio.Task[int] | None = None
        self._looked_at = 0.0
        self._looked_after = -1
        self._listens = False

    def grew(self) -> None:
        self.signals += 1
        self._grown.set()
        self._grown = asyncio.Event()

    async def signal(self, seen: int) -> int:
        """Wait a moment for a signal after the first `seen` ones. Return the number of signals by then."""
        if self.signals == seen:
            grown = self._grown
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_LISTENING if self._listens else LOOK):
                    await grown.wait()
        return self.signals

    async def ends_at(self, position: int) -> bool:
        """Return True if the log ends at this position, so that a reader that has reached it has nothing to do.

        One query answers all readers of the process: its result is used until the next signal, and for no longer than `LOOK`.
        """
        if self._look is None or self._looked_after != self.signals or time.monotonic() - self._looked_at >= LOOK:
            self._looked_at, self._looked_after = time.monotonic(), self.signals
            self._look = asyncio.create_task(head(self._database), name="look at the end of the log")
            self._look.add_done_callback(self._forget_failed)
        return await asyncio.shield(self._look) == position

    def _forget_failed(self, look: asyncio.Task[int]) -> None:
        """Discard a failed look. The readers that wait for it receive its error; there may be none left."""
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
            self._listens = True
            async for _ in connection.receive():
                self.grew()
        finally:
            self._listens = False
            await connection.close()

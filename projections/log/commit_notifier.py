"""Notifies other processes of new events with one NOTIFY after a commit, on a separate connection.

NOTIFY inside the append would take PostgreSQL's global commit lock. Notifications are hints: several within a short time are merged
into one, and a lost notification costs a listener at most its poll interval.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from projections.kernel.background_task import BackgroundTask
from projections.kernel.database.database import Database

CHANNEL = "medialedger_log"
_PAUSE = 0.02


class CommitNotifier(BackgroundTask):
    """Sends notifications in the background. `announce(position)` never waits and may be called after every commit."""

    WHAT: ClassVar[str] = "notifier of commits"

    def __init__(self, database: Database) -> None:
        self._database = database
        self.latest = 0
        self._grown = asyncio.Event()

    def announce(self, position: int) -> None:
        self.latest = max(self.latest, position)
        self._grown.set()

    async def _turn(self) -> None:
        connection = await self._database.connect("commit_notifier")
        try:
            while True:
                await self._grown.wait()
                self._grown.clear()
                await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, str(self.latest)))
                await asyncio.sleep(_PAUSE)
        finally:
            await connection.close()

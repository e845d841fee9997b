"""Tells listeners in other processes that the log has grown: one NOTIFY after a commit, from a connection of its own.

NOTIFY inside the append would take PostgreSQL's global commit lock. Announcements are hints: those that come while one is under
way become one, and a lost one costs a listener no more than its poll interval.
"""

from __future__ import annotations

import asyncio
import logging

import psycopg

from projections.kernel.background import Background
from projections.kernel.database import Database

CHANNEL = "medialedger_log"
_log = logging.getLogger(__name__)
_PAUSE = 0.02


class Announcer(Background):
    """`announce(position)` may be called as often as there are commits; it never waits."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.latest = 0
        self._grown = asyncio.Event()

    def announce(self, position: int) -> None:
        self.latest = max(self.latest, position)
        self._grown.set()

    async def _run(self) -> None:
        while True:
            try:
                await self._listen_and_tell()
            except psycopg.Error as fault:
                _log.warning("announcements stopped, trying again: %s", type(fault).__name__)
                await asyncio.sleep(1)

    async def _listen_and_tell(self) -> None:
        connection = await self._database.connect("announcer")
        try:
            while True:
                await self._grown.wait()
                self._grown.clear()
                await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, str(self.latest)))
                await asyncio.sleep(_PAUSE)
        finally:
            await connection.close()

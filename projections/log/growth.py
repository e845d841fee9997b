"""Knows when the log has grown: told by this process's own appender, by NOTIFY from others, and by looking as a safety net."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import psycopg

from projections.kernel.background import Background
from projections.kernel.database import Database
from projections.log.announce import CHANNEL
from projections.log.tail import head

_log = logging.getLogger(__name__)
LOOK = 0.25


class Growth(Background):
    """One per process, for all who follow the log. `told` may be called from the appender's own loop; it never waits."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._grown = asyncio.Event()
        self.position = 0

    def told(self, position: int) -> None:
        if position > self.position:
            self.position = position
            self._grown.set()
            self._grown = asyncio.Event()

    async def beyond(self, position: int) -> int:
        """The log's head as far as it is known, which is beyond `position` unless the log has been still for a moment."""
        if self.position > position:
            return self.position
        grown = self._grown
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK):
                await grown.wait()
        if self.position <= position:
            self.told(await head(self._database))
        return self.position

    async def _run(self) -> None:
        while True:
            try:
                await self._pass_on()
            except psycopg.Error as fault:
                _log.info("not told of the log's growth for a moment: %s", type(fault).__name__)
            await asyncio.sleep(LOOK)

    async def _pass_on(self) -> None:
        connection = await self._database.connect("listener")
        try:
            await connection.execute(f"LISTEN {CHANNEL}".encode())
            async for notice in connection.notifies():
                self.told(int(notice.payload))
        finally:
            await connection.close()

"""Retention: makes partitions ahead of need, drops old ones, and removes what is kept for a time only.

It runs in every process that has workers or the API; an advisory lock, which ends with its connection, lets one at a time do it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.kernel.clock import Clock
from projections.kernel.background_task import BackgroundTask
from projections.kernel.database import Database
from projections.kernel.partitions import DayTable, cover, drop_before

_LOCK: Final = 0x6D6C206F6C64  # "ml old"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Removal:
    """Removes what is older than a time, from tables without partitions; gives how much that was. `setting` names the setting with
    the days for which it is kept."""

    what: str
    setting: str
    remove: Callable[[Database, datetime], Awaitable[int]]


class Retention(BackgroundTask):
    """`days` are those of the settings, by name. The pauses are in seconds; the short one is for a reader that was in the way."""

    WHAT: ClassVar[str] = "retention"

    def __init__(
        self,
        database: Database,
        *,
        tables: Sequence[DayTable],
        removals: Sequence[Removal],
        days: Callable[[str], int],
        clock: Clock,
        pauses: tuple[float, float] = (600.0, 60.0),
    ) -> None:
        self._database = database
        self._tables = tables
        self._removals = removals
        self._days = days
        self._clock = clock
        self._pauses = pauses

    async def tidy(self) -> bool:
        """False: it is not done yet, and should be tried again soon."""
        connection = await self._database.connect("retention")
        try:
            found = await (await connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,))).fetchone()
            return not found or not found[0] or await self._tidy(connection)
        finally:
            await connection.close()

    async def _tidy(self, connection: AsyncConnection[TupleRow]) -> bool:
        now, done = self._clock(), True
        for table in self._tables:
            days = self._days(table.setting) + table.longer
            done &= await cover(connection, table, now=now, days=days)
            done &= await drop_before(connection, table, before=now - timedelta(days=days))
        for removal in self._removals:
            removed = await removal.remove(self._database, now - timedelta(days=self._days(removal.setting)))
            if removed:
                _log.info("removed %d %s", removed, removal.what)
        return done

    async def _turn(self) -> None:
        done = await self.tidy()
        await asyncio.sleep(self._pauses[0] if done else self._pauses[1])

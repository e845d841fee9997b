"""Retention: makes partitions ahead of need, drops old ones, and removes data that are stored for a limited time.

It runs in every process that has workers or the API. An advisory lock, which ends with its connection, lets one process at a time
do the work.
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
from projections.kernel.database.database import Database
from projections.kernel.sql.partitions import DayTable, cover, drop_before

_LOCK: Final = 0x6D6C206F6C64  # "ml old"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Removal:
    """A function that removes rows older than a time from tables without partitions, and returns their number. `setting` names the
    setting with the number of days for which they are stored."""

    what: str
    setting: str
    remove: Callable[[Database, datetime], Awaitable[int]]


class Retention(BackgroundTask):
    """The background task of retention. `days` returns the value of a setting by its name. The pauses are in seconds; the short one
    is used when a reader blocked the work."""

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
        """Run retention once. Return False if it is not complete and should be tried again soon."""
        connection = await self._database.connect("retention")
        try:
            row = await (await connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,))).fetchone()
            return not row or not row[0] or await self._tidy(connection)
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

"""Carries out redactions that are in progress, and drops aggregates that lost content from the cache of this process.

It runs in every process that has workers or the API. An advisory lock lets one process at a time carry out redactions; each process
drops aggregates.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.audit.redactor import Redactor
from projections.kernel.background_task import BackgroundTask
from projections.kernel.database.database import Database
from projections.log.executor import CommandExecutor

_LOCK: Final = 0x6D6C207265646163  # "ml redac"
_FORGOTTEN: Final = "SELECT stream, position FROM redacted_streams WHERE position > %s"


class RedactionTask(BackgroundTask):
    """The background task of redactions. `pause` is in seconds."""

    WHAT: ClassVar[str] = "redactions"

    def __init__(self, database: Database, redactor: Redactor, executor: CommandExecutor, *, pause: float = 2.0) -> None:
        self._database = database
        self._redactor = redactor
        self._executor = executor
        self._pause = pause
        self._seen: int | None = None

    async def carry_out(self) -> None:
        """Continue all redactions in progress, as far as possible now."""
        if await self._redactor.unfinished():
            connection = await self._database.connect("redactions")
            try:
                if await _try_lock(connection):
                    await self._carry_out()
            finally:
                await connection.close()

    async def _carry_out(self) -> None:
        for order in await self._redactor.unfinished():
            current = order
            while current.reached < current.through:
                current = await self._redactor.step(current)
            await self._redactor.step(current)

    async def forget(self) -> None:
        """Drop aggregates whose content another process erased."""
        if self._seen is None:
            row = await self._database.row("SELECT coalesce(max(position), 0) FROM redacted_streams")
            self._seen = 0 if row is None else int(row[0])
            return
        rows = await self._database.rows(_FORGOTTEN, (self._seen,))
        self._executor.forget(stream for stream, _ in rows)
        self._seen = max([self._seen, *(position for _, position in rows)])

    async def _turn(self) -> None:
        await self.forget()
        await self.carry_out()
        await asyncio.sleep(self._pause)


async def _try_lock(connection: AsyncConnection[TupleRow]) -> bool:
    row = await (await connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,))).fetchone()
    return bool(row and row[0])

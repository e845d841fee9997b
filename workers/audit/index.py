"""Fills the index of the audit behind the log. It runs in every process with workers or the API; a lock lets one at a time do the
work."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from projections.audit.index import fill
from projections.kernel.background_task import BackgroundTask
from projections.kernel.database.database import Database


class AuditIndex(BackgroundTask):
    """The background task that fills the index. `pause` is in seconds."""

    WHAT: ClassVar[str] = "index of the audit"

    def __init__(self, database: Database, *, pause: float = 2.0) -> None:
        self._database = database
        self._pause = pause

    async def _turn(self) -> None:
        more = await fill(self._database)
        await asyncio.sleep(0 if more else self._pause)

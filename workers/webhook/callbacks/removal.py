"""Removes callbacks that no job of the last 30 days names: docs/adr/0036-callbacks-are-a-kind-of-their-own.md."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from typing import ClassVar, Final
from uuid import UUID

from domain.kernel.clock import Clock
from domain.kernel.errors import Conflict, NotFound
from domain.kernel.ports import Executor, Invocation
from domain.webhook.callback import RETENTION, Callback
from projections.kernel.background_task import BackgroundTask
from projections.kernel.database.database import Database
from projections.webhook.unused_callbacks import FIRST, forget, read_to, without_jobs, without_pending

CONSUMER: Final = "callback"
"""The consumer whose handler is the fan-out of callbacks."""
_EVERY: Final = 3600.0
_POLL: Final = 1.0

_log = logging.getLogger(__name__)


class CallbackRemoval(BackgroundTask):
    """Removes unused callbacks at the start and then every hour. Several processes may do so at once.

    A job that names a callback at the same moment writes to the callback, unless a job has done so on that day; then it is not
    removed. One of the two appends is refused, decided again, and sees what the other has written.
    """

    WHAT: ClassVar[str] = "removal of unused callbacks"

    def __init__(self, database: Database, executor: Executor, *, clock: Clock, every: float = _EVERY) -> None:
        self._database = database
        self._executor = executor
        self._clock = clock
        self._every = every

    async def remove(self) -> int:
        """Remove unused callbacks, and return the number of those that were unused. Wait until the fan-out has read the events of
        their jobs."""
        before, after, removed = (self._clock() - RETENTION).date(), FIRST, 0
        while page := await without_jobs(self._database, named_before=before, after=after):
            await self._until_read(page.position)
            removed += await self._remove(await without_pending(self._database, page.callbacks), before)
            after = page.last
        return removed

    async def _until_read(self, position: int) -> None:
        """Wait until the fan-out has read up to this position: then there is a delivery for every notice before it."""
        while True:
            if await read_to(self._database, CONSUMER) >= position:
                return
            await asyncio.sleep(_POLL)

    async def _remove(self, callbacks: Sequence[UUID], before: date) -> int:
        for result in await asyncio.gather(*(self._remove_one(callback, before) for callback in callbacks), return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
        await forget(self._database, callbacks)
        return len(callbacks)

    async def _remove_one(self, callback: UUID, before: date) -> None:
        with suppress(Conflict, NotFound):  # another client has changed or deleted it at the same moment
            await self._executor.execute(Callback.remove_unused.on(callback, before), invocation=Invocation.by("system"))

    async def _turn(self) -> None:
        removed = await self.remove()
        if removed:
            _log.info("removed %d callbacks that no job has named for %d days", removed, RETENTION.days)
        await asyncio.sleep(self._every)

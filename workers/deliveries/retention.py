"""Finished deliveries are kept for 30 days, with their attempts: docs/reference/limits.md."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import ClassVar, Final

from domain.kernel.clock import Clock
from projections.deliveries.store import DeliveryStore
from projections.kernel.background_task import BackgroundTask

KEPT: Final = timedelta(days=30)
_log = logging.getLogger(__name__)


class Retention(BackgroundTask):
    """Deletes older deliveries at the start and then every hour. Several processes may do it at once."""

    WHAT: ClassVar[str] = "removal of old deliveries"

    def __init__(self, store: DeliveryStore, *, clock: Clock, every: float = 3600.0) -> None:
        self._store = store
        self._clock = clock
        self._every = every

    async def _turn(self) -> None:
        deleted = await self._store.prune(self._clock() - KEPT)
        if deleted:
            _log.info("deleted %d deliveries that were finished more than %d days ago", deleted, KEPT.days)
        await asyncio.sleep(self._every)

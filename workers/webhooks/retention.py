"""Deliveries that are done are kept for 30 days, with their tries. docs/reference/limits.md."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Final

from domain.kernel.clock import Clock
from domain.kernel.errors import Unavailable
from projections.deliveries.ledger import DeliveryLedger
from projections.kernel.background import Background

KEPT: Final = timedelta(days=30)
_log = logging.getLogger(__name__)


class Retention(Background):
    """Removes what is older, at the start and then every hour. Several processes may do it at once."""

    def __init__(self, ledger: DeliveryLedger, *, clock: Clock, every: float = 3600.0) -> None:
        self._ledger = ledger
        self._clock = clock
        self._every = every

    async def _run(self) -> None:
        while True:
            try:
                gone = await self._ledger.prune(self._clock() - KEPT)
            except Unavailable as fault:
                _log.warning("old deliveries were not removed, trying again: %s", fault)
            else:
                if gone:
                    _log.info("removed %d deliveries that were done more than %d days ago", gone, KEPT.days)
            await asyncio.sleep(self._every)

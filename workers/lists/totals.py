"""Adds up the totals of lists from what appends have written since the last time."""

from __future__ import annotations

import asyncio
import time
from typing import ClassVar, Final

from projections.kernel.background_task import BackgroundTask
from projections.kernel.sql.tallies import Tallies

_EVERY: Final = 1.0
_FORGET_EVERY: Final = 3600.0


class TotalsTask(BackgroundTask):
    """The background task that adds up totals. Several processes may do so at once. Without it totals stay exact, and become slower
    to read."""

    WHAT: ClassVar[str] = "totals of lists"

    def __init__(self, tallies: Tallies) -> None:
        self._tallies = tallies
        self._forgotten = float("-inf")

    async def _turn(self) -> None:
        if time.monotonic() - self._forgotten > _FORGET_EVERY:
            await self._tallies.forget()
            self._forgotten = time.monotonic()
        if not await self._tallies.add_up():
            await asyncio.sleep(_EVERY)

"""Adds up the totals of lists from what appends have written since the last time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import ClassVar, Final

from projections.kernel.background_task import BackgroundTask
from projections.kernel.sql.tallies import Tallies

_EVERY: Final = 1.0
_AT_LEAST: Final = 60.0
_FORGET_EVERY: Final = 3600.0


class TotalsTask(BackgroundTask):
    """The background task that adds up totals. Several processes may do so at once. Without it totals stay exact, and become slower
    to read."""

    WHAT: ClassVar[str] = "totals of lists"

    def __init__(self, tallies: Tallies, *, position: Callable[[], int | None]) -> None:
        """`position` returns the end of the log as far as this process has read it; None if it does not read it."""
        self._tallies = tallies
        self._position = position
        self._seen: int | None = None
        self._added_up = self._forgotten = float("-inf")

    async def _turn(self) -> None:
        if time.monotonic() - self._forgotten > _FORGET_EVERY:
            await self._tallies.forget()
            self._forgotten = time.monotonic()
        position, now = self._position(), time.monotonic()
        if position is None or position != self._seen or now - self._added_up > _AT_LEAST:
            self._seen, self._added_up = position, now
            if await self._tallies.add_up():
                self._seen = None
                return
        await asyncio.sleep(_EVERY)

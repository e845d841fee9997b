"""Releases reports of steps in batches, so that steps that end within a moment of each other are written in one append."""

from __future__ import annotations

import asyncio
from typing import Final

INTERVAL: Final = 0.02
"""Seconds from one batch to the next. Each append costs a flush and the lock of the log, which all processes wait for."""


class ReportBatches:
    """Batches reports: one that comes after a quiet moment does not wait; those that follow within the interval are released
    together."""

    def __init__(self, interval: float = INTERVAL) -> None:
        self._interval = interval
        self._next = float("-inf")
        self._batch: asyncio.Event | None = None

    async def turn(self) -> None:
        """Wait for the current batch."""
        loop = asyncio.get_running_loop()
        if self._batch is None:
            if loop.time() >= self._next:
                self._next = loop.time() + self._interval
                return
            self._batch = asyncio.Event()
            loop.call_at(self._next, self._release, self._batch)
        await self._batch.wait()

    def _release(self, batch: asyncio.Event) -> None:
        self._batch, self._next = None, asyncio.get_running_loop().time() + self._interval
        batch.set()

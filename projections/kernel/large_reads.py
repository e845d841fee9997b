"""Serialises large reads, because their results are in memory several times until the response is sent."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from domain.kernel.errors import Unavailable

_PATIENCE: Final = 5.0


class LargeReads:
    """A single place for large reads. A task that reads a large result holds the place until the task ends.

    Each request has its own task, so by then its response is encoded and handed to the connection.
    """

    def __init__(self, *, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._place = asyncio.Semaphore()
        self._holder: asyncio.Task[Any] | None = None

    async def wait(self) -> None:
        """Wait until this task may read; return at once if it has read before. Raise `Unavailable` after too long a wait."""
        task = asyncio.current_task()
        if task is None or task is self._holder:
            return
        try:
            async with asyncio.timeout(self._patience):
                await self._place.acquire()
        except TimeoutError:
            raise Unavailable("too many large lists are being read") from None
        self._holder = task
        task.add_done_callback(self._ended)

    def _ended(self, _: object) -> None:
        self._holder = None
        self._place.release()

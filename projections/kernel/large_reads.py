"""Large reads, one after another: what they find is in memory several times until the response is sent."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from domain.kernel.errors import Unavailable

_PATIENCE: Final = 5.0


class LargeReads:
    """The task that reads one holds the only place until it ends. Each request has a task of its own, so its response is
    encoded and handed to the connection by then."""

    def __init__(self, *, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._place = asyncio.Semaphore()
        self._holder: asyncio.Task[Any] | None = None

    async def wait(self) -> None:
        """Until this task may read; at once if it has read before. Raises `Unavailable`."""
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

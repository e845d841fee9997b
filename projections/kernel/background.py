"""What goes on by itself beside everything else, from start to stop."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Background:
    """Base of a thing with a task of its own, which is cancelled at the end."""

    _task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=type(self).__name__.lower())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        raise NotImplementedError(type(self).__name__)

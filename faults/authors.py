"""Concurrent clients that act one step after another, with pauses, until all steps are answered."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from faults.asking import Asking

Act = Callable[[], Awaitable[None]]


class Authors:
    """A number of `authors` that together perform `per_second` acts. Their requests are sent through `asking`."""

    def __init__(self, *, authors: int, per_second: float, dice: random.Random) -> None:
        self._count = authors
        self._pause = authors / per_second
        self._dice = dice
        self._asking: Asking
        self._authors: asyncio.Future[Any]

    def _begin(self, work: Iterator[Act]) -> None:
        self._authors = asyncio.gather(*(self._author(work) for _ in range(self._count)))

    async def _author(self, work: Iterator[Act]) -> None:
        await asyncio.sleep(self._pause * self._dice.random())
        for act in work:
            await act()
            await asyncio.sleep(self._pause * self._dice.uniform(0.5, 1.5))

    @property
    def over(self) -> bool:
        """True if all requests are answered, or an answer was not understood."""
        return self._authors.done()

    @property
    def well(self) -> bool:
        return not self._authors.done() or self._authors.exception() is None

    async def finish(self) -> None:
        await self._authors

    async def close(self) -> None:
        self._authors.cancel()
        await asyncio.gather(self._authors, return_exceptions=True)
        await self._asking.close()

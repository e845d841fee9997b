"""Data loader: reads by key that are requested at the same moment become one query, as group commit does for writes.

A read that arrives while a query is in progress joins the next query, so a result is never older than its call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import islice
from typing import Generic, TypeVar

from projections.kernel.background_task import start_task

K = TypeVar("K")
V = TypeVar("V")


class DataLoader(Generic[K, V]):
    """Batches reads by key. `ask` takes distinct keys and returns the rows that exist; unknown keys are absent."""

    def __init__(self, ask: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]], *, lanes: int = 2, limit: int = 256) -> None:
        self._ask = ask
        self._lanes = lanes
        self._limit = limit
        self._waiting: dict[K, list[asyncio.Future[V | None]]] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._busy = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def __call__(self, key: K) -> asyncio.Future[V | None]:
        """Return a future of the value for a key. Every caller has its own future, so that a cancelled caller does not affect the
        others."""
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()  # looked up once, because Python 3.11 makes a system call for it
        answer: asyncio.Future[V | None] = loop.create_future()
        self._waiting.setdefault(key, []).append(answer)
        if self._busy < self._lanes:
            self._busy += 1
            task = start_task(self._run(), what="data loader")
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return answer

    async def many(self, keys: Sequence[K]) -> dict[K, V]:
        """Return the values of several keys, read in the same shared queries."""
        answers = [(key, self(key)) for key in keys]
        values: dict[K, V] = {}
        try:
            for key, answer in answers:
                value = await answer
                if value is not None:
                    values[key] = value
        finally:
            for _, answer in answers:
                answer.cancel()  # after a fault the other answers are not needed; answers that are done stay done
        return values

    async def _run(self) -> None:
        """Answer waiting keys until there are none. The lane is free from that moment; its task ends a little later."""
        try:
            while self._waiting:
                await self._answer_next()
        finally:
            self._busy -= 1

    async def _answer_next(self) -> None:
        asked = dict(islice(self._waiting.items(), self._limit))
        for key in asked:
            del self._waiting[key]
        answers = [(key, answer) for key, waiting in asked.items() for answer in waiting]
        try:
            values = await self._ask(list(asked))
        except BaseException as fault:
            for _, answer in answers:
                _fail(answer, fault)
            if not isinstance(fault, Exception):
                raise
        else:
            for key, answer in answers:
                if not answer.done():
                    answer.set_result(values.get(key))


def _fail(answer: asyncio.Future[V | None], fault: BaseException) -> None:
    if answer.done():
        return
    if isinstance(fault, Exception):
        answer.set_exception(fault)
    else:
        answer.cancel()

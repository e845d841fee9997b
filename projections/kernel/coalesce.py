"""Questions asked in the same moment become one query: what the group commit is for writes, for reads by key.

A question that arrives while a query is under way joins the next one, so an answer never predates its question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Coalesced(Generic[K, V]):
    """`ask` takes distinct keys and gives what it found; a key it does not know is simply absent."""

    def __init__(self, ask: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]], *, lanes: int = 2, limit: int = 256) -> None:
        self._ask = ask
        self._lanes = lanes
        self._limit = limit
        self._waiting: dict[K, asyncio.Future[V | None]] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def __call__(self, key: K) -> V | None:
        answer = self._waiting.get(key)
        if answer is None:
            answer = self._waiting[key] = asyncio.get_running_loop().create_future()
            self._go()
        return await asyncio.shield(answer)

    async def many(self, keys: Sequence[K]) -> dict[K, V]:
        """Several keys at once, within the same shared queries."""
        found = await asyncio.gather(*(self(key) for key in keys))
        return {key: value for key, value in zip(keys, found, strict=True) if value is not None}

    def _go(self) -> None:
        if len(self._running) < self._lanes:
            task = asyncio.create_task(self._run())
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _run(self) -> None:
        while self._waiting:
            asked = dict(list(self._waiting.items())[: self._limit])
            for key in asked:
                del self._waiting[key]
            try:
                found = await self._ask(list(asked))
            except BaseException as fault:
                for answer in asked.values():
                    if not answer.done():
                        answer.set_exception(fault if isinstance(fault, Exception) else asyncio.CancelledError())
                        answer.exception() if isinstance(fault, Exception) else None
                if not isinstance(fault, Exception):
                    raise
            else:
                for key, answer in asked.items():
                    if not answer.done():
                        answer.set_result(found.get(key))

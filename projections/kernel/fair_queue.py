"""Fair queuing of reads: places go to the readers in turns, so that one with many requests does not hold up the others."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

from domain.kernel.errors import Unavailable

READER: Final[ContextVar[str]] = ContextVar("reader", default="")
"""For whom the present task reads; empty for the product itself."""
_PATIENCE: Final = 5.0


class FairQueue:
    """`places` that are read in at the same time, of which one reader has `each` at most. Beyond `waiting` requests the reader with
    the most of them loses its last one."""

    def __init__(self, places: int, *, each: int, waiting: int, patience: float = _PATIENCE) -> None:
        self._free = places
        self._each = each
        self._most_waiting = waiting
        self._patience = patience
        self._used: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # the reader whose turn is next comes first
        self._waits = 0
        self._refused = 0
        self._waited = 0.0

    async def take(self) -> str:
        """A place for the reader of this task, who is returned. Raises `Unavailable` when too many wait, or one waits too long."""
        reader = READER.get()
        if not self._take(reader):
            await self._wait(reader)
        return reader

    def leave(self, reader: str) -> None:
        self._free += 1
        self._used[reader] -= 1
        if not self._used[reader]:
            del self._used[reader]
        self._hand_out()

    def stats(self) -> Mapping[str, int]:
        """Under the names of psycopg_pool."""
        return {
            "requests_waiting": self._length,
            "requests_queued": self._waits,
            "requests_wait_ms": int(self._waited * 1000),
            "requests_errors": self._refused,
        }

    def _take(self, reader: str) -> bool:
        if not self._free or self._used[reader] >= self._each:
            return False
        self._free -= 1
        self._used[reader] += 1
        return True

    async def _wait(self, reader: str) -> None:
        if self._length >= self._most_waiting:
            self._make_room(reader)
        began, turn = time.monotonic(), asyncio.get_running_loop().create_future()
        self._waiting.setdefault(reader, deque()).append(turn)
        self._waits += 1
        try:
            async with asyncio.timeout(self._patience):
                await turn
        except BaseException as fault:
            self._forget(reader, turn)
            if not isinstance(fault, TimeoutError):
                raise
            self._refused += 1
            raise _too_many() from None
        finally:
            self._waited += time.monotonic() - began

    @property
    def _length(self) -> int:
        return sum(map(len, self._waiting.values()))

    def _make_room(self, reader: str) -> None:
        """The readers do not fill the queue for each other."""
        greediest = max(self._waiting, key=lambda name: len(self._waiting[name]))
        self._refused += 1
        if len(self._waiting[greediest]) <= len(self._waiting.get(reader, ())) + 1:
            raise _too_many()
        turn = self._waiting[greediest].pop()
        if not turn.done():  # else it was cancelled in the same moment
            turn.set_exception(_too_many())

    def _hand_out(self) -> None:
        while self._free:
            reader = next((name for name in self._waiting if self._used[name] < self._each), None)
            if reader is None:
                return
            turns = self._waiting.pop(reader)
            turn = turns.popleft()
            if turns:
                self._waiting[reader] = turns  # behind the others
            if not turn.done():
                self._take(reader)
                turn.set_result(None)

    def _forget(self, reader: str, turn: asyncio.Future[None]) -> None:
        """The request has ended. It may have been given a place in the same moment."""
        if turn.done() and not turn.cancelled() and turn.exception() is None:
            self.leave(reader)
        elif turn in (turns := self._waiting.get(reader, deque())):
            turns.remove(turn)
            if not turns:
                del self._waiting[reader]


def _too_many() -> Unavailable:
    return Unavailable("too many lists are being read")

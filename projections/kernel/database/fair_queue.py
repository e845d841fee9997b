"""Fair queuing: readers get places in turns, so that a reader with many requests does not delay the others."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from domain.kernel.errors import Unavailable
from projections.kernel.database.readers import READER, Reader

PATIENCE: Final = 5.0
"""The number of seconds that a request waits for a place."""


class ReaderPlace(NamedTuple):
    """A place that a reader has held since a time of the queue's clock."""

    reader: Reader
    since: float


class FairQueue:
    """A queue for `places` that can be used at the same time, at most `each` of them by one reader.

    If more than `waiting` requests wait, the reader with the most of them loses its last one. `refusal` makes the error of a
    request that gets no place. Unless `counts` is false, the time for which a reader holds a place is charged to its budget.
    """

    def __init__(
        self,
        places: int,
        *,
        each: int,
        waiting: int,
        refusal: Callable[[], Unavailable],
        counts: bool = True,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._free = places
        self._each = each
        self._most_waiting = waiting
        self._refusal = refusal
        self._patience = patience
        self._counts = counts
        self._clock = clock
        self._used: Counter[Reader] = Counter()
        self._waiting: dict[Reader, deque[asyncio.Future[None]]] = {}  # the reader whose turn is next is first
        self._alarm: asyncio.TimerHandle | None = None
        self._waits = 0
        self._refused = 0
        self._waited = 0.0

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        taken = await self.take()
        try:
            yield
        finally:
            self.leave(taken)

    async def take(self) -> ReaderPlace:
        """Take a place for the reader of this task. Raise the refusal if too many requests wait, or this one waits too long."""
        reader = READER.get()
        if reader in self._waiting or not self._take(reader):
            await self._wait(reader)
        return ReaderPlace(reader, self._clock())

    def leave(self, taken: ReaderPlace) -> None:
        if self._counts:
            taken.reader.took(self._clock() - taken.since)
        self._give_back(taken.reader)

    def _give_back(self, reader: Reader) -> None:
        self._free += 1
        self._used[reader] -= 1
        if not self._used[reader]:
            del self._used[reader]
        self._hand_out()

    def stats(self) -> Mapping[str, int]:
        """Return statistics under the names of psycopg_pool."""
        return {
            "requests_waiting": self._length,
            "requests_queued": self._waits,
            "requests_wait_ms": int(self._waited * 1000),
            "requests_errors": self._refused,
        }

    def _take(self, reader: Reader) -> bool:
        if not self._free or self._used[reader] >= self._each or self._rest(reader):
            return False
        self._give(reader)
        return True

    def _give(self, reader: Reader) -> None:
        self._free -= 1
        self._used[reader] += 1

    def _rest(self, reader: Reader) -> float:
        return reader.rest if self._counts else 0.0

    async def _wait(self, reader: Reader) -> None:
        if self._length >= self._most_waiting:
            self._make_room(reader)
        began, turn = self._clock(), asyncio.get_running_loop().create_future()
        self._waiting.setdefault(reader, deque()).append(turn)
        self._waits += 1
        self._hand_out()
        try:
            async with asyncio.timeout(self._patience):
                await turn
        except BaseException as fault:
            self._forget(reader, turn)
            if not isinstance(fault, TimeoutError):
                raise
            self._refused += 1
            raise self._refusal() from None
        finally:
            self._waited += self._clock() - began

    @property
    def _length(self) -> int:
        return sum(map(len, self._waiting.values()))

    def _make_room(self, reader: Reader) -> None:
        """Refuse a request of the reader with the most requests, so that readers do not fill the queue for each other."""
        greediest = max(self._waiting, key=lambda waiting_reader: len(self._waiting[waiting_reader]))
        self._refused += 1
        if len(self._waiting[greediest]) <= len(self._waiting.get(reader, ())) + 1:
            raise self._refusal()
        turn = self._waiting[greediest].pop()
        if not turn.done():  # otherwise it was cancelled at the same moment
            turn.set_exception(self._refusal())

    def _hand_out(self) -> None:
        """Give free places to readers that may take one. Readers that must rest are considered again when the first of them may
        continue."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        rests: list[float] = []
        while self._free and (reader := self._next(rests)) is not None:
            turns = self._waiting.pop(reader)
            turn = turns.popleft()
            if turns:
                self._waiting[reader] = turns  # behind the others
            if not turn.done():
                self._give(reader)
                turn.set_result(None)
        if self._free and rests:
            self._alarm = asyncio.get_running_loop().call_later(min(rests), self._hand_out)

    def _next(self, rests: list[float]) -> Reader | None:
        """Return the reader whose turn it is, or None. `rests` is filled with the times for which other readers must wait before
        their turn."""
        rests.clear()
        for reader in self._waiting:
            if self._used[reader] < self._each:
                if not (rest := self._rest(reader)):
                    return reader
                rests.append(rest)
        return None

    def _forget(self, reader: Reader, turn: asyncio.Future[None]) -> None:
        """Remove a request that has ended. It may have received a place at the same moment."""
        if turn.done() and not turn.cancelled() and turn.exception() is None:
            self._give_back(reader)
        elif turn in (turns := self._waiting.get(reader, deque())):
            turns.remove(turn)
            if not turns:
                del self._waiting[reader]

"""The usage recorder: writes to the log how often content keys were used.

A response does not wait for it, and a key that is requested often does not cause an event per request. Uses are totalled in
memory; once per interval each key that was used gets one `content_key.delivered` with a count. A stop writes the rest. A process
that is killed loses the counts and times since the last interval began, or since the database was last available; never a key.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from domain.content_key.commands import RecordUsage
from domain.content_key.usage import KeyUse, UsageTotal, UsageTotals
from domain.kernel.clock import Clock
from domain.kernel.errors import Conflict, Unavailable
from domain.kernel.ports import Executor, Invocation
from projections.kernel.background_task import run_forever

_log = logging.getLogger(__name__)

EVERY = 5.0
MOST_KEYS = 20_000
_TOGETHER = 128


class UsageRecorder:
    """Records the usage of at most `most` keys per interval. Uses of further keys are counted in the log of the service."""

    def __init__(self, executor: Executor, clock: Clock, *, every: float = EVERY, most: int = MOST_KEYS) -> None:
        self._executor = executor
        self._clock = clock
        self._every = every
        self._most = most
        self._totals = UsageTotals(most)
        self._wake = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        work = run_forever(self._turn, what="usage of content keys", until=lambda: self._stopping)
        self._task = asyncio.create_task(work, name="usage of content keys")

    async def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await self._task
        await self.flush()
        if self._totals:
            _log.warning("the usage of %d content keys was not recorded", len(self._totals))

    def add(self, use: KeyUse) -> None:
        before = len(self._totals)
        self._totals.add(use, at=self._clock())
        if before < len(self._totals) and 2 * len(self._totals) == self._most:
            self._wake.set()

    async def flush(self) -> None:
        """Record all totals, each with its own event and many in one commit. Stops at the first sign that the database is away."""
        if self._totals.dropped:
            _log.warning("%d uses of content keys were not recorded: too many keys at once", self._totals.dropped)
            self._totals.dropped = 0
        left = deque(self._totals.take().items())
        while left:
            chunk = [left.popleft() for _ in range(min(_TOGETHER, len(left)))]
            errors = await asyncio.gather(*(self._record(key, total) for key, total in chunk))
            self._keep_unwritten(chunk, errors)
            if any(isinstance(error, Unavailable) for error in errors):
                for key, total in left:
                    self._totals.put_back(key, total)
                return

    def _keep_unwritten(self, chunk: Sequence[tuple[UUID, UsageTotal]], errors: Sequence[Exception | None]) -> None:
        """Without a database or after lost races it is tried again. What the domain refuses would be refused every time."""
        for (key, total), error in zip(chunk, errors, strict=True):
            if isinstance(error, Unavailable | Conflict):
                self._totals.put_back(key, total)
            elif error is not None:
                _log.error("the usage of the content key %s was not recorded", key, exc_info=error)

    async def _record(self, key: UUID, total: UsageTotal) -> Exception | None:
        invocation = Invocation.by(total.client, correlation_id=total.correlation_id)
        try:
            await self._executor.execute(RecordUsage(key, total.usage), invocation=invocation)
        except Exception as error:
            return error
        return None

    async def _turn(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._every):
                await self._wake.wait()
        self._wake.clear()
        await self.flush()

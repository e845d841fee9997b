"""The usage recorder, which records how often content keys are used.

A response does not wait for it, and a frequently requested key does not cause an event per request. Uses are totalled in memory;
once per interval the totals are added to a table, and each key whose last event was written more than an hour ago gets one
`content_key.delivered` with a count. So the first use after a quiet hour is logged immediately, and a stream grows by at most 24
events a day. On a stop the rest is added to the table. A process that is killed loses the counts and times since the last
interval began, or since the database was last available, but never a key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from uuid import UUID

from domain.content_key.aggregate import ContentKey
from domain.content_key.usage import KeyUse, UsageTotal, UsageTotals
from domain.kernel.cause import ActorKind
from domain.kernel.clock import Clock
from domain.kernel.errors import Conflict, Unavailable
from domain.kernel.ports import Executor, Invocation
from projections.content_key.usage import DueUsage, UsageCounts
from projections.kernel.background_task import start_forever

_log = logging.getLogger(__name__)

EVERY = 5.0
MOST_KEYS = 20_000
_TOGETHER = 128


class UsageRecorder:
    """Records the usage of at most `most` keys per interval. Uses of further keys are counted in the log of the service."""

    def __init__(
        self, executor: Executor, counts: UsageCounts, *, clock: Clock, every: float = EVERY, most: int = MOST_KEYS
    ) -> None:
        self._executor = executor
        self._counts = counts
        self._clock = clock
        self._every = every
        self._most = most
        self._totals = UsageTotals(most)
        self._batch: Mapping[UUID, UsageTotal] = {}
        self._batches = 0
        self._wake = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = start_forever(self._turn, what="usage of content keys", until=lambda: self._stopping)

    async def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await self._task
        try:
            await self.flush()
            await self._counts.leave()
        except Unavailable:
            _log.warning("the usage of %d content keys was not recorded", len({*self._batch, *self._totals.take()}))

    def add(self, use: KeyUse) -> None:
        before = len(self._totals)
        self._totals.add(use, at=self._clock())
        if before < len(self._totals) and 2 * len(self._totals) == self._most:
            self._wake.set()

    async def flush(self) -> None:
        """Add all totals to the table, and write the events that are due. Raise `Unavailable` without losing counts."""
        if self._totals.dropped:
            _log.warning("%d uses of content keys were not recorded: too many keys at once", self._totals.dropped)
            self._totals.dropped = 0
        await self._add_batch()  # a previous batch that failed may have been added, so it keeps its number
        self._batch, self._batches = self._totals.take(), self._batches + 1
        await self._add_batch()
        while due := await self._counts.take(_TOGETHER):
            await self._tell(due)

    async def _add_batch(self) -> None:
        if self._batch:
            await self._counts.add(self._batches, self._batch)
            self._batch = {}

    async def _tell(self, due: Sequence[DueUsage]) -> None:
        """Write the events that are due. Without a database or after lost races they are retried; an event that the domain
        refuses is dropped, because it would be refused every time."""
        failed: list[DueUsage] = []
        for usage, error in zip(due, await asyncio.gather(*map(self._record, due)), strict=True):
            if isinstance(error, Unavailable | Conflict):
                failed.append(usage)
            elif error is not None:
                _log.error("the usage of the content key %s was not recorded", usage.key, exc_info=error)
        await self._counts.mark_recorded([usage for usage in due if usage not in failed])
        if failed:
            await self._counts.put_back(failed)
            raise Unavailable(f"the usage of {len(failed)} content keys could not be written")

    async def _record(self, due: DueUsage) -> Exception | None:
        invocation = Invocation.by(due.total.client, correlation_id=due.total.correlation_id, kind=ActorKind.CLIENT)
        try:
            await self._executor.execute(ContentKey.record_counted_usage.on(due.key, due.total.usage), invocation=invocation)
        except Exception as error:
            return error
        return None

    async def _turn(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._every):
                await self._wake.wait()
        self._wake.clear()
        await self.flush()

"""Records outcomes in batches: all that arrive during a write are in the next statement, whatever their endpoint.

The connection does not wait for the disk (`synchronous_commit` off): if a crash of the database loses an outcome, the delivery is
sent again.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final, NamedTuple

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.consumers.leases import LeaseLost
from projections.kernel.background_task import run_forever
from projections.kernel.database.database import Database
from projections.webhook.store import AttemptOutcome, DeliveryStore, EndpointHealthChange

_MOST: Final = 2000
# Without fresh statistics of a growing table, the planner would read the whole table.
_SETTINGS: Final = (
    ("synchronous_commit", "off"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
)


class _Record(NamedTuple):
    outcome: AttemptOutcome
    health: EndpointHealthChange | None
    is_owned: asyncio.Future[bool]


class OutcomeRecorder:
    """Records outcomes under the epochs of their shards."""

    def __init__(self, database: Database, store: DeliveryStore) -> None:
        self._database = database
        self._store = store
        self._records: list[_Record] = []
        self._some = asyncio.Event()
        self._none = asyncio.Event()
        self._connection: AsyncConnection[TupleRow] | None = None

    async def record(self, outcome: AttemptOutcome, health: EndpointHealthChange | None) -> None:
        """Record an outcome, and return when it is committed. Raise `LeaseLost` if the shard belongs to another member now."""
        is_owned: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._records.append(_Record(outcome, health, is_owned))
        self._none.clear()
        self._some.set()
        if not await is_owned:
            raise LeaseLost

    async def run(self) -> None:
        """Record outcomes until cancelled."""
        try:
            await run_forever(self._record_next, what="writer of outcomes", by_name=True)
        finally:
            await self._disconnect()

    async def finish(self, *, seconds: float) -> None:
        """Wait until all outcomes are recorded, but no longer than `seconds`."""
        if self._records:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._none.wait()

    async def _record_next(self) -> None:
        if not self._records:
            self._none.set()
            self._some.clear()
        await self._some.wait()
        batch = self._records[:_MOST]
        try:
            owned = await self._write(batch)
        except Exception:
            await self._disconnect()
            raise
        del self._records[: len(batch)]
        for outcome, _, is_owned in batch:
            if not is_owned.done():
                is_owned.set_result((outcome.shard, outcome.epoch) in owned)

    async def _write(self, batch: list[_Record]) -> set[tuple[int, int]]:
        if self._connection is None:
            self._connection = await self._database.connect("deliveries", settings=_SETTINGS)
        health = {change.webhook: change for _, change, _ in batch if change is not None}
        outcomes = [outcome for outcome, _, _ in batch]
        return await self._store.record(self._connection, outcomes, health=list(health.values()))

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                await connection.close()

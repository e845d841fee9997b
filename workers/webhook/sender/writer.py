"""Writes outcomes in batches: all that arrived during the last write are one statement.

The connection does not wait for the disk (`synchronous_commit` off): if a crash of the database loses an outcome, the delivery is
sent again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.kernel.background_task import run_forever
from projections.kernel.database.database import Database
from projections.webhook.endpoint_health import EndpointFailures, EndpointHealthChange
from projections.webhook.store import DeliveryStore, Key
from workers.webhook.sender.endpoint import EndpointSender
from workers.webhook.sender.scheduler import DeliveryScheduler, PendingOutcome

_MOST: Final = 2000
# Without fresh statistics of a growing table, the planner would read the whole table.
_SETTINGS: Final = (
    ("synchronous_commit", "off"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
)


class OutcomeWriter:
    """Keeps outcomes until they are written. `written` is called after every write."""

    def __init__(
        self, database: Database, store: DeliveryStore, *, scheduler: DeliveryScheduler, written: Callable[[], None]
    ) -> None:
        self._database = database
        self._store = store
        self._scheduler = scheduler
        self._written = written
        self._outcomes: list[PendingOutcome] = []
        self._health: dict[EndpointSender, EndpointFailures] = {}
        self._some = asyncio.Event()
        self._none = asyncio.Event()
        self._connection: AsyncConnection[TupleRow] | None = None

    def add(self, pending_outcome: PendingOutcome) -> None:
        self._outcomes.append(pending_outcome)
        self._none.clear()
        self._some.set()

    def set_health(self, endpoint: EndpointSender, health: EndpointFailures) -> None:
        """Set the health to write with the next outcome."""
        self._health[endpoint] = health

    async def run(self) -> None:
        """Write outcomes until cancelled."""
        try:
            await run_forever(self._write_next, what="writer of outcomes", by_name=True)
        finally:
            await self._disconnect()

    async def _write_next(self) -> None:
        if not self._outcomes:
            self._none.set()
        await self._some.wait()
        try:
            await self._write()
        except Exception:
            await self._disconnect()
            raise

    async def finish(self, *, seconds: float) -> None:
        """Wait until all outcomes are written, but no longer than `seconds`."""
        if self._outcomes:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._none.wait()

    async def _write(self) -> None:
        if self._connection is None:
            self._connection = await self._database.connect("deliveries", settings=_SETTINGS)
        batch = _without_repeats(self._outcomes)
        health = dict(self._health)
        changes = [
            EndpointHealthChange(endpoint.webhook, endpoint.shard, endpoint.epoch, state) for endpoint, state in health.items()
        ]
        owned = await self._store.record(self._connection, [pending.outcome for pending in batch], health=changes)
        del self._outcomes[: len(batch)]
        self._health = {
            endpoint: state for endpoint, state in self._health.items() if endpoint not in health or health[endpoint] != state
        }
        if not self._outcomes:
            self._some.clear()
        revoked = {(pending.outcome.shard, pending.outcome.epoch) for pending in batch} - owned
        for shard, epoch in revoked:
            self._scheduler.revoke(shard, epoch)
        for pending_outcome in batch:
            self._scheduler.outcome_written(pending_outcome)
        self._written()

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                await connection.close()


def _without_repeats(outcomes: list[PendingOutcome]) -> list[PendingOutcome]:
    """Return the first outcomes, up to a second one of the same delivery: one statement writes a row only once."""
    seen: set[Key] = set()
    for number, pending_outcome in enumerate(outcomes[:_MOST]):
        if pending_outcome.outcome.key in seen:
            return outcomes[:number]
        seen.add(pending_outcome.outcome.key)
    return outcomes[:_MOST]

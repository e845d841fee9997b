"""Writes what became of tries: all that came in while the last write was under way, as one statement. Issue 5, "Delivery".

The connection does not wait for the disk: an outcome that is lost with the database is no more than a repeat.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Final

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.deliveries.ledger import DeliveryLedger, Key, Turn
from projections.kernel.database import Database
from workers.webhooks.dispatch import Dispatch, Settled
from workers.webhooks.endpoint import Endpoint

_MOST: Final = 2000
_AGAIN_SECONDS: Final = 0.5
# Without statistics of a table that has just grown, the planner would read all of it.
_SETTINGS: Final = (
    ("synchronous_commit", "off"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
)

_log = logging.getLogger(__name__)


class Writer:
    """`written` is called after every write."""

    def __init__(self, database: Database, ledger: DeliveryLedger, *, dispatch: Dispatch, written: Callable[[], None]) -> None:
        self._database = database
        self._ledger = ledger
        self._dispatch = dispatch
        self._written = written
        self._settled: list[Settled] = []
        self._turned: dict[Endpoint, datetime | None] = {}
        self._some = asyncio.Event()
        self._none = asyncio.Event()
        self._connection: AsyncConnection[TupleRow] | None = None

    def add(self, settled: Settled) -> None:
        self._settled.append(settled)
        self._none.clear()
        self._some.set()

    def turn(self, endpoint: Endpoint, since: datetime | None) -> None:
        """It begins to fail, or succeeds again; written with the next outcome."""
        self._turned[endpoint] = since

    async def run(self) -> None:
        """Until it is cancelled."""
        try:
            while True:
                if not self._settled:
                    self._none.set()
                await self._some.wait()
                try:
                    await self._write()
                except Exception as fault:
                    _log.warning("outcomes of deliveries wait to be written: %s", type(fault).__name__)
                    await self._disconnect()
                    await asyncio.sleep(_AGAIN_SECONDS)
        finally:
            await self._disconnect()

    async def finish(self, *, seconds: float) -> None:
        """Wait until all is written, if that is soon."""
        if self._settled:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._none.wait()

    async def _write(self) -> None:
        if self._connection is None:
            self._connection = await self._database.connect("deliveries", settings=_SETTINGS)
        batch = _without_repeats(self._settled)
        turned = dict(self._turned)
        turns = [Turn(one.webhook, one.shard, one.epoch, since) for one, since in turned.items()]
        held = await self._ledger.record(self._connection, [one.outcome for one in batch], turns=turns)
        del self._settled[: len(batch)]
        self._turned = {one: since for one, since in self._turned.items() if one not in turned or turned[one] != since}
        if not self._settled:
            self._some.clear()
        lost = {(one.outcome.shard, one.outcome.epoch) for one in batch} - held
        for shard, epoch in lost:
            self._dispatch.lose(shard, epoch)
        for settled in batch:
            self._dispatch.wrote(settled)
        self._written()

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                await connection.close()


def _without_repeats(settled: list[Settled]) -> list[Settled]:
    """The first ones, up to a delivery that is among them already: one statement writes a row once."""
    seen: set[Key] = set()
    for number, one in enumerate(settled[:_MOST]):
        if one.outcome.key in seen:
            return settled[:number]
        seen.add(one.outcome.key)
    return settled[:_MOST]

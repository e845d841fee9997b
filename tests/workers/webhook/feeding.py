"""Feeds a fan-out from a log, and shows the deliveries that it made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pydantic_core import from_json

from api.wiring.catalogue import notified
from api.wiring.core import Core
from domain.kernel.command import Command
from domain.kernel.mapper import EventMapper
from domain.kernel.ports import Invocation, Plan
from domain.record.record import RegisterRecord
from domain.webhook.aggregate import Webhook
from projections.kernel.database.database import Database
from projections.kernel.sizes import MIB
from projections.log.reader import head, read
from projections.log.transactions import writes
from tests.support.feeding import do
from workers.kernel.log_reader import Selection
from workers.webhook.callbacks.fanout import CallbackFanout
from workers.webhook.fanout import NotificationFanout

ALL = UUID(int=101)
ONE = UUID(int=102)


@dataclass
class Fed:
    """A fan-out that the test feeds as its consumer does."""

    inner: Core
    fanout: NotificationFanout | CallbackFanout
    at: int = 0
    woken: list[int] = field(default_factory=list)

    async def begin(self, position: int) -> None:
        self.at = position
        await self.fanout.begin(position)

    async def feed(self, *, writes_at_once: int = 1000) -> None:
        """Feed everything up to the end of the log, in batches of so many whole writes."""
        records = await read(self.inner.database, self.at, limit=100_000)
        together = list(writes(records))
        for start in range(0, len(together), writes_at_once):
            batch = [record for write in together[start : start + writes_at_once] for record in write]
            wanted = [record for record in batch if Selection(self.fanout.topics).selects(record.topic)]
            await self.take(wanted)
            self.at = batch[-1].position

    async def take(self, records: Any) -> None:
        effects = await self.fanout.prepare(records) if records else None
        if effects is not None:
            async with self.inner.database.connection() as connection, connection.transaction():
                await self.fanout.write(connection, effects)
            self.fanout.wrote(effects)


def fed(inner: Core, *, most: int = MIB) -> Fed:
    woken: list[int] = []
    mapper = EventMapper(inner.catalogue)
    return Fed(
        inner,
        NotificationFanout(
            inner.database, inner.streams, mapper=mapper, notified=notified(), wake=lambda _: woken.append(1), most=most
        ),
        woken=woken,
    )


async def webhook(inner: Core, key: UUID, *, event: UUID | None = None, **values: Any) -> None:
    await do(inner, RegisterRecord(key, Webhook, {"webhook_url": "https://hooks.test/a", "event_id": event, **values}))


async def amend(inner: Core, key: UUID, **changes: Any) -> None:
    await do(inner, Webhook.amend.on(key, changes))


async def delete(inner: Core, key: UUID) -> None:
    await do(inner, Webhook.delete.on(key))


async def together(inner: Core, *commands: Command[Any]) -> int:
    """Execute several commands as one write. Return the end of the log."""

    async def ask() -> Plan:
        return Plan(commands)

    await inner.executor.execute(ask, invocation=Invocation.by("system"))
    return await head(inner.database)


async def rows(database: Database) -> list[tuple[Any, ...]]:
    """Return the columns that do not depend on when the fan-out ran."""
    return await database.rows(
        "SELECT webhook, position, ordering_key, shard, payload, state, error, created_at FROM deliveries"
        " ORDER BY position, webhook, ordering_key"
    )


async def notifications(database: Database, webhook: UUID = ALL) -> list[str]:
    """Return the payloads for a webhook in short form, in order: the action, the states and the flags that are true."""
    rows = await database.rows("SELECT payload FROM deliveries WHERE webhook = %s ORDER BY position, ordering_key", (webhook,))
    return [_short(from_json(text)) for (text,) in rows]


def _short(payload: dict[str, Any]) -> str:
    flags = [name for name, value in payload.items() if value is True]
    return " ".join([payload["eventId"][-1], payload["action"], payload["state"], *flags])

"""An Event with an unreadable record, with a running consumer: records that belong to the Event do not overtake it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

from api.wiring.core import Core
from domain.event.commands import AddOrUpdateEvent
from domain.record.kinds.chapter_point import ChapterPoint
from projections.consumers.leases import ShardLeases
from projections.consumers.parked_records import ParkedRecords
from projections.log.reader import head
from tests.projections.log.helpers import rows as read_rows
from tests.projections.log.helpers import until
from tests.support.feeding import as_superuser, do, event, record
from tests.workers.consumed import consumed
from tests.workers.webhook.feeding import ALL, fed, notifications, webhook

_PARKED = "SELECT position FROM parked_records ORDER BY position"


@asynccontextmanager
async def consuming(inner: Core) -> AsyncIterator[None]:
    handler = fed(inner).fanout
    leases = ShardLeases(inner.database, "webhooks", shards=1, member=uuid4(), lease=0.4)
    async with consumed(inner, handler, leases):
        yield


async def test_a_chapter_point_waits_for_the_unreadable_record_of_its_event(inner: Core, database_url: str) -> None:
    await webhook(inner, ALL)
    await event(inner, 1)
    await do(inner, AddOrUpdateEvent(UUID(int=1), {"title": "unreadable"}))
    unreadable = await head(inner.database)
    await record(inner, ChapterPoint, 11, event_id=UUID(int=1), start_time="00:00:01")
    chapter_point = await head(inner.database)
    await event(inner, 2)
    [(state,)] = await inner.database.rows("SELECT convert_from(state, 'UTF8') FROM events WHERE position = %s", (unreadable,))
    as_superuser(database_url, f"UPDATE events SET state = '{{' WHERE position = {unreadable}")
    async with consuming(inner):
        await until(lambda: read_rows(database_url, _PARKED) == [(unreadable,), (chapter_point,)])
        await until(lambda: len(read_rows(database_url, "SELECT FROM pending_deliveries")) == 2)
        assert [line.split()[:2] for line in await notifications(inner.database)] == [["1", "Added"], ["2", "Added"]]
        await ParkedRecords(inner.database).request_replay("webhooks")
        await until(lambda: read_rows(database_url, "SELECT min(attempts) FROM parked_records") == [(2,)])
    as_superuser(database_url, f"UPDATE events SET state = convert_to('{state}', 'UTF8') WHERE position = {unreadable}")
    await ParkedRecords(inner.database).request_replay("webhooks")
    async with consuming(inner):
        await until(lambda: not read_rows(database_url, _PARKED))
    rows = await inner.database.rows("SELECT position, ordering_key FROM pending_deliveries ORDER BY position")
    assert rows[1:3] == [(unreadable, str(UUID(int=1))), (chapter_point, str(UUID(int=1)))]
    assert len(rows) == 4

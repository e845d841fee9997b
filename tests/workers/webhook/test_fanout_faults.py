"""The fan-out with unreadable records, and with late records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID

import pytest
from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from pydantic import ValidationError

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.kernel.errors import Unavailable
from domain.kernel.mapper import UnknownTopic
from domain.record.kinds.chapter_point import ChapterPoint
from projections.log.reader import head, read
from projections.webhook.keys import CHANNEL
from tests.projections.webhook.finishing import finishing
from tests.support.clock import NOON
from tests.support.feeding import as_superuser, do, event, record
from tests.workers.webhook.feeding import ALL, ONE, Fed, amend, fed, notifications, rows, webhook

FIRST = UUID(int=1)


@pytest.fixture
async def fan(inner: Core) -> Fed:
    await webhook(inner, ALL)
    await event(inner, 1)
    await do(inner, MediaEvent.force_notification.on(FIRST))
    return fed(inner)


@pytest.fixture
async def listener(inner: Core) -> AsyncIterator[AsyncConnection[TupleRow]]:
    connection = await inner.database.connect("test")
    await connection.execute(f"LISTEN {CHANNEL}")
    yield connection
    await connection.close()


async def heard(listener: AsyncConnection[TupleRow]) -> list[str]:
    """Return all notifications up to now. The last one is from this test."""
    await listener.execute(f"NOTIFY {CHANNEL}, 'end'")
    message: list[str] = []
    async with asyncio.timeout(60):
        async for note in listener.notifies():
            if note.payload == "end":
                break
            message.append(note.payload)
    return message


async def test_a_record_that_cannot_be_read_is_refused_and_the_rest_goes_on_after_begin(inner: Core, fan: Fed) -> None:
    first, *others, last = await read(inner.database, 0)
    for broken in (replace(last, topic="event.beamed_up"), replace(last, state=b"{")):
        await fan.begin(0)
        with pytest.raises((UnknownTopic, ValidationError)):
            await fan.take([first, *others, broken])
        assert await rows(inner.database) == []
    await fan.begin(0)
    await fan.feed()
    assert await notifications(inner.database) == ["1 Added PRE_LIVE stateChanged metadataChanged", "1 Updated PRE_LIVE isForced"]


async def test_a_record_without_subscribers_is_not_read(inner: Core, fan: Fed) -> None:
    records = [record for record in await read(inner.database, 0) if record.kind == "event"]
    await fan.take([replace(record, state=b"{") for record in records])
    assert await rows(inner.database) == []


async def test_a_webhook_with_an_unreadable_record_is_as_its_view_shows_it(inner: Core, fan: Fed, database_url: str) -> None:
    await amend(inner, ALL, disabled_at=NOON)
    await webhook(inner, ONE)
    as_superuser(database_url, "UPDATE events SET topic = 'webhook.beamed_up' WHERE topic = 'webhook.amended'")
    await do(inner, MediaEvent.force_notification.on(FIRST))
    await fan.begin(await head(inner.database) - 1)
    await fan.feed()
    assert [(row[0], row[5]) for row in await rows(inner.database)] == [(ALL, 2), (ONE, 0)]
    as_superuser(database_url, "UPDATE events SET topic = 'webhook.amended' WHERE topic = 'webhook.beamed_up'")
    parked = [record for record in await read(inner.database, 0) if record.topic == "webhook.amended"]
    await fan.take(parked)  # now it can be read, and is replayed
    await do(inner, MediaEvent.force_notification.on(FIRST))
    await fan.feed()
    assert [(row[0], row[5]) for row in await rows(inner.database)] == [(ALL, 2), (ONE, 0), (ALL, 2), (ONE, 0)]


async def test_a_replayed_record_gives_the_same_notification(inner: Core, fan: Fed, listener: AsyncConnection[TupleRow]) -> None:
    await do(inner, AddOrUpdateEvent(FIRST, {"ref_id": "later"}))
    await webhook(inner, ONE)
    await do(inner, MediaEvent.force_notification.on(FIRST))
    await fan.feed()
    everything = await rows(inner.database)
    assert await heard(listener) == [""]
    late = next(record for record in await read(inner.database, 0) if record.topic == "event.notification_forced")
    await inner.database.execute("DELETE FROM pending_deliveries WHERE position = %s", (late.position,))
    await fan.take([late])
    assert await rows(inner.database) == everything
    assert await heard(listener) == [str(ALL)], "senders look again through the deliveries of this webhook"
    await do(inner, MediaEvent.force_notification.on(FIRST))
    await fan.feed()
    assert [row[4] for row in await rows(inner.database)][-1].count('"referenceId":"later"') == 1


async def test_an_event_with_parked_records_is_shown_as_in_the_log(inner: Core, fan: Fed) -> None:
    """The feed has its chapter points, but not its own records."""
    await record(inner, ChapterPoint, 11, event_id=FIRST, start_time="00:00:01")
    await fan.begin(await head(inner.database) - 1)
    await fan.feed()
    await do(inner, AddOrUpdateEvent(FIRST, {"ref_id": "parked"}))
    await do(inner, ChapterPoint.amend.on(UUID(int=11), {"title": "Goal"}))
    await fan.take((await read(inner.database, 0))[-1:])
    assert ['"referenceId":"parked"' in row[4] for row in await rows(inner.database)] == [False, True]


async def test_existing_rows_stay_unchanged_and_wake_no_sender(inner: Core, fan: Fed, listener: AsyncConnection[TupleRow]) -> None:
    await fan.feed()
    await inner.database.execute(finishing(attempts="3"))
    before = await inner.database.rows("SELECT * FROM deliveries ORDER BY position")
    assert await heard(listener) == [""]
    await fan.begin(0)
    await fan.feed()
    assert await inner.database.rows("SELECT * FROM deliveries ORDER BY position") == before
    assert await heard(listener) == []


async def test_rows_appear_with_the_commit_of_the_transaction(inner: Core, fan: Fed, listener: AsyncConnection[TupleRow]) -> None:
    effects = await fan.fanout.prepare(await read(inner.database, 0))
    assert effects is not None
    async with inner.database.connection() as connection, connection.transaction(force_rollback=True):
        await fan.fanout.write(connection, effects)
        assert await (await connection.execute("SELECT count(*) FROM deliveries")).fetchone() == (2,)
    assert await rows(inner.database) == []
    assert await heard(listener) == []


async def test_a_database_that_is_down_is_reported(inner: Core, fan: Fed) -> None:
    records = await read(inner.database, 0)
    await fan.begin(records[-1].position - 1)
    await inner.database.close()
    with pytest.raises(Unavailable):
        await fan.fanout.prepare(records[-1:])


async def test_more_webhooks_than_one_statement_takes(inner: Core, database_url: str) -> None:
    for number in range(60):
        await webhook(inner, UUID(int=1000 + number))
    for number in range(50):
        await event(inner, number + 1)
    fan = fed(inner)
    await fan.feed()
    assert await inner.database.row("SELECT count(*), count(DISTINCT position) FROM deliveries") == (3000, 50)

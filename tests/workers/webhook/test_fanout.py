"""The fan-out of notifications on a real log: the webhooks that are notified of a write, and the state that they are shown."""

from __future__ import annotations

from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.commands import (
    AddOrUpdateEvent,
)
from domain.event.values import EventState, Mp4State, Trigger
from domain.kernel.cause import Cause
from domain.redaction.events import Part
from projections.audit.redactor import RedactionSelection
from projections.log.reader import head
from projections.webhook.keys import shard_of
from tests.support.clock import NOON
from tests.support.feeding import do, event, room
from tests.workers.webhook.feeding import ALL, ONE, Fed, amend, delete, fed, notifications, rows, webhook

FIRST, SECOND = UUID(int=1), UUID(int=2)
ADDED = "stateChanged metadataChanged"


@pytest.fixture
def fan(inner: Core) -> Fed:
    return fed(inner)


async def test_each_effective_write_is_one_notification_with_the_state_after_it(inner: Core, fan: Fed) -> None:
    await webhook(inner, ALL)
    await event(inner, 1, title="Final", ref_id="r1")
    await do(inner, AddOrUpdateEvent(FIRST, {"title": "Final", "ref_id": "r1"}))  # changes nothing
    await do(inner, AddOrUpdateEvent(FIRST, {"thumbnail": "a.jpg", "room_id": None}, state=EventState.LIVE_PUBLISHED))
    await do(inner, AddOrUpdateEvent(FIRST, {"ref_id": "r2"}, mp4_state=Mp4State.GENERATING))
    await do(inner, MediaEvent.force_stop.on(FIRST))
    await do(inner, MediaEvent.force_stop.on(FIRST))  # an order again
    await do(inner, MediaEvent.force_notification.on(FIRST))
    await do(inner, MediaEvent.delete.on(FIRST))
    await do(inner, MediaEvent.restore.on(FIRST))
    await fan.feed()
    assert await notifications(inner.database) == [
        f"1 Added PRE_LIVE {ADDED}",
        "1 Updated LIVE_PUBLISHED stateChanged thumbnailChanged",
        "1 Updated LIVE_PUBLISHED metadataChanged mp4StateChanged",
        "1 Updated STOPPED stateChanged isForced",
        "1 Updated STOPPED isForced",
        "1 Updated STOPPED isForced",
        "1 Deleted STOPPED",
        "1 Restored STOPPED",
    ]
    rows = await inner.database.rows(
        "SELECT payload::json->>'referenceId', payload::json->>'mp4State' FROM deliveries ORDER BY position"
    )
    assert rows == [("r1", "NONE"), ("r1", "NONE"), *[("r2", "GENERATING")] * 6]


async def test_a_row_says_where_it_comes_from_and_when_it_is_due(inner: Core, fan: Fed) -> None:
    await webhook(inner, ALL)
    await do(inner, AddOrUpdateEvent(FIRST, {"title": "Final"}, state=EventState.LIVE_PUBLISHED))
    await fan.feed()
    ((position, recorded_at),) = await inner.database.rows("SELECT position, recorded_at FROM events ORDER BY 1 DESC LIMIT 1")
    ((webhook_id, at, ordering_key, shard, _, state, error, created_at),) = await rows(inner.database)
    assert (webhook_id, at, ordering_key, shard, state, error) == (ALL, position, str(FIRST), shard_of(ALL), 0, None)
    assert created_at == recorded_at
    ((due, unfinished),) = await inner.database.rows(
        "SELECT due_at BETWEEN created_at AND clock_timestamp(), finished_at IS NULL FROM deliveries"
    )
    assert (due, unfinished) == (True, True)
    assert fan.woken == [1]


async def test_a_webhook_gets_only_writes_of_its_own_lifetime(inner: Core, fan: Fed) -> None:
    await event(inner, 1)
    await webhook(inner, ALL)
    await do(inner, AddOrUpdateEvent(FIRST, {"title": "told"}))
    await delete(inner, ALL)
    await do(inner, AddOrUpdateEvent(FIRST, {"title": "not told"}))
    await webhook(inner, ALL)
    await do(inner, MediaEvent.change_state.on(FIRST, EventState.STOPPED, trigger=Trigger.OPERATOR))
    await fan.feed()
    assert await notifications(inner.database) == ["1 Updated PRE_LIVE metadataChanged", "1 Updated STOPPED stateChanged"]


async def test_an_event_webhook_gets_notifications_of_its_event_only(inner: Core, fan: Fed) -> None:
    await event(inner, 1)
    await webhook(inner, ALL)
    await webhook(inner, ONE, event=FIRST)
    await event(inner, 2)
    await do(inner, MediaEvent.force_notification.on(FIRST))
    await amend(inner, ONE, event_id=SECOND)
    await do(inner, MediaEvent.force_notification.on(FIRST))
    await do(inner, MediaEvent.force_notification.on(SECOND))
    await fan.feed()
    assert await notifications(inner.database, ONE) == ["1 Updated PRE_LIVE isForced", "2 Updated PRE_LIVE isForced"]
    assert len(await notifications(inner.database, ALL)) == 4


async def test_deliveries_for_a_disabled_webhook_are_inserted_as_failed(inner: Core, fan: Fed) -> None:
    await webhook(inner, ALL)
    await amend(inner, ALL, disabled_at=NOON)
    await event(inner, 1)
    await fan.feed()
    result = await inner.database.rows("SELECT state, error, finished_at IS NOT NULL FROM deliveries")
    assert result == [(2, "the webhook is disabled", True)]
    await amend(inner, ALL, disabled_at=None)
    await do(inner, MediaEvent.force_notification.on(FIRST))
    await fan.feed()
    assert [row[5] for row in await rows(inner.database)] == [2, 0]


async def test_without_webhooks_and_without_events_there_is_nothing_to_write(inner: Core, fan: Fed) -> None:
    await event(inner, 1)
    await fan.feed()
    await webhook(inner, ALL)
    await room(inner, 7, "Studio")
    await fan.feed()
    assert (await rows(inner.database), fan.woken) == ([], [])


async def test_the_state_is_that_after_the_write_even_when_read_late(inner: Core, fan: Fed) -> None:
    """This includes a snapshot of a later state."""
    await webhook(inner, ALL)
    await event(inner, 1)
    for number in range(120):
        await do(inner, AddOrUpdateEvent(FIRST, {"ref_id": str(number)}))
    await inner.executor.stop()
    assert await inner.database.rows("SELECT originator_version FROM snapshots") == [(100,)]
    for start, form in ((50, b""), (110, b""), (110, bytes(16))):
        if form:  # that of another build: the whole stream is read
            await inner.database.execute("UPDATE snapshots SET form = %s", (form,))
        await inner.database.execute("DELETE FROM pending_deliveries")
        await fan.begin(start)
        await fan.feed()
        rows = await inner.database.rows("SELECT payload::json->>'referenceId' FROM deliveries ORDER BY position")
        assert [int(number) for (number,) in rows] == list(range(start - 2, 120))


async def test_repeated_feeding_in_any_batches_makes_the_same_rows(inner: Core, fan: Fed) -> None:
    await event(inner, 1, title="Final")
    await webhook(inner, ONE, event=FIRST)
    await event(inner, 2)
    await do(inner, MediaEvent.change_state.on(FIRST, EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR))
    await webhook(inner, ALL)
    await do(inner, AddOrUpdateEvent(SECOND, {"thumbnail": "a"}, state=EventState.STOPPED))
    await amend(inner, ALL, disabled_at=NOON)
    await do(inner, MediaEvent.delete.on(FIRST))
    await delete(inner, ONE)
    await do(inner, MediaEvent.restore.on(FIRST))
    await fan.feed()
    once = await rows(inner.database)
    for start in range(await head(inner.database)):
        for size in (1, 3, 1000):
            again = fed(inner, most=3000)
            await inner.database.execute("DELETE FROM pending_deliveries WHERE position > %s", (start + 2,))
            await again.begin(start)
            await again.feed(writes_at_once=size)
            assert await rows(inner.database) == once, (start, size)


@pytest.mark.parametrize("others", [False, True], ids=["nobody is left", "others are left"])
async def test_an_event_without_subscribers_is_not_cached(inner: Core, fan: Fed, others: bool) -> None:
    await webhook(inner, ONE, event=FIRST)
    await event(inner, 1)
    await fan.feed()
    await (amend(inner, ONE, event_id=SECOND) if others else delete(inner, ONE))
    await fan.feed()
    await do(inner, AddOrUpdateEvent(FIRST, {"ref_id": "unheard"}))
    await fan.feed()
    await webhook(inner, ALL)
    await do(inner, MediaEvent.force_notification.on(FIRST))
    await fan.feed()
    ((text,),) = await inner.database.rows("SELECT payload FROM deliveries WHERE webhook = %s", (ALL,))
    assert '"referenceId":"unheard"' in text


async def test_erased_content_is_missing_in_later_notifications(inner: Core, fan: Fed) -> None:
    """The fan-out caches the Event as it was, and sees the redaction like any other change."""
    await webhook(inner, ALL)
    await event(inner, 1, ref_id="Ilse")
    await do(inner, AddOrUpdateEvent(FIRST, {}, state=EventState.LIVE_PUBLISHED))
    await do(inner, AddOrUpdateEvent(FIRST, {}, state=EventState.STOPPED))
    await fan.feed()
    selection = RedactionSelection(stream=f"event:{FIRST}")
    order = await inner.redactor.request(selection, [Part.CONTENT], reason="r", cause=Cause.by("admin"))
    while order.reached < order.through:
        order = await inner.redactor.step(order)
    await do(inner, AddOrUpdateEvent(FIRST, {"title": "New"}))
    await fan.feed()
    rows = await inner.database.rows("SELECT payload::json->>'referenceId' FROM deliveries ORDER BY position")
    assert [reference or "" for (reference,) in rows] == ["Ilse", "Ilse", "Ilse", "", ""]
    await inner.redactor.step(order)
    assert await inner.database.rows("SELECT 1 FROM deliveries WHERE strpos(payload, 'Ilse') > 0") == []

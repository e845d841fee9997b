"""A change of a room, a type or a category is notified for the Events that show it, and that are live or come next."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventState
from domain.record.kinds.category import Category
from domain.record.kinds.custom_property import CategoryProperty
from domain.record.kinds.event_type import EventType
from domain.record.kinds.room import Room
from domain.record.record import Record, RegisterRecord
from projections.event import queries as showing
from tests.support.feeding import do, event, record
from tests.workers.webhook.feeding import ALL, ONE, Fed, fed, notifications, rows, together, webhook

HALL, PLAZA, MATCH, SPORT, NEWS, PROPERTY = (UUID(int=number) for number in (101, 102, 103, 104, 105, 106))
LIVE = EventState.LIVE_UNPUBLISHED
LINKS: dict[str, Any] = {"room_id": HALL, "event_type_id": MATCH, "category_ids": (SPORT,)}
CHANGED = "Updated {} metadataChanged"


async def scheduled(inner: Core, number: int, *, days: float | None, state: EventState | None = None, **links: Any) -> UUID:
    [(now,)] = await inner.database.rows("SELECT now()")
    start = None if days is None else now + timedelta(days=days)
    return await event(inner, number, scheduled_start=start, state=state, **links)


@pytest.fixture
async def fan(inner: Core) -> Fed:
    """Return a fan-out. Of the linked Events, 1 is live, 2 comes next, and 3 is over. Event 4 has no link."""
    for kind, key, values in (
        (Room, HALL, {"name": "Hall"}),
        (Room, PLAZA, {"name": "Plaza"}),
        (EventType, MATCH, {"name": "match", "colour": "#fff"}),
        (Category, SPORT, {"name": "Sport", "label": "sport"}),
        (Category, NEWS, {"name": "News", "label": "news"}),
    ):
        await record(inner, kind, key.int, **values)
    await scheduled(inner, 1, days=None, state=LIVE, **LINKS)
    await scheduled(inner, 2, days=1, **LINKS)
    await scheduled(inner, 3, days=-1, state=EventState.STOPPED, **LINKS)
    await scheduled(inner, 4, days=1, state=LIVE, room_id=PLAZA, category_ids=(NEWS,))
    await do(inner, MediaEvent.delete.on(await scheduled(inner, 5, days=1, **LINKS)))
    await webhook(inner, ALL)
    await webhook(inner, ONE, event=UUID(int=2))
    fan = fed(inner)
    await fan.feed()
    await inner.database.rows("DELETE FROM pending_deliveries RETURNING webhook")
    return fan


CHANGES: list[tuple[type[Record], UUID, dict[str, Any]]] = [
    (Room, HALL, {"name": "Great hall"}),
    (EventType, MATCH, {"name": "game"}),
    (EventType, MATCH, {"colour": "#000"}),
    (Category, SPORT, {"name": "Sports"}),
    (Category, SPORT, {"label": "sports"}),
    (Category, SPORT, {"description": "All of it"}),
]


@pytest.mark.parametrize(("kind", "key", "values"), CHANGES)
async def test_what_events_show_is_notified_for_live_ones_and_the_next(
    inner: Core, fan: Fed, kind: type[Record], key: UUID, values: dict[str, Any]
) -> None:
    before = await inner.database.rows("SELECT id, version, date_modified, shown_version FROM event_view ORDER BY id")
    await do(inner, kind.amend.on(key, values))
    await fan.feed()
    assert await notifications(inner.database) == [f"1 {CHANGED.format('LIVE_UNPUBLISHED')}", f"2 {CHANGED.format('PRE_LIVE')}"]
    assert await notifications(inner.database, ONE) == [f"2 {CHANGED.format('PRE_LIVE')}"]
    assert await inner.database.rows("SELECT id, version, date_modified, shown_version FROM event_view ORDER BY id") == before
    result = await rows(inner.database)
    await fan.begin(fan.at - 1)
    await fan.feed()
    assert await rows(inner.database) == result, "read again, it is the same notifications"


async def test_what_no_event_shows_is_not_notified(inner: Core, fan: Fed) -> None:
    await do(inner, Room.amend.on(HALL, {"reference_id": "r-1"}))
    await record(inner, Room, 110, name="New")
    await do(inner, Room.delete.on(UUID(int=110)))
    await fan.feed()
    assert await notifications(inner.database) == []


async def test_each_change_of_the_properties_of_a_category_is_one_notification(inner: Core, fan: Fed) -> None:
    def added(number: int, owner: UUID = SPORT) -> RegisterRecord:
        pair = {"category": "a", "key": str(number), "value": "x"}
        return RegisterRecord(UUID(int=number), CategoryProperty, {"owner_id": owner, **pair})

    expected = [f"1 {CHANGED.format('LIVE_UNPUBLISHED')}", f"2 {CHANGED.format('PRE_LIVE')}"]
    await together(inner, added(PROPERTY.int), added(107), added(108, NEWS))
    await fan.feed()
    assert await notifications(inner.database) == [*expected, f"4 {CHANGED.format('LIVE_UNPUBLISHED')}"]
    await do(inner, CategoryProperty.amend.on(PROPERTY, {"value": "z"}))
    await fan.feed(writes_at_once=1)
    await do(inner, CategoryProperty.delete.on(PROPERTY))
    await fan.feed()
    assert (await notifications(inner.database))[3:] == [*expected, *expected]


async def test_an_event_is_shown_as_of_the_change(inner: Core, fan: Fed) -> None:
    key = UUID(int=1)
    await do(inner, AddOrUpdateEvent(key, {"ref_id": "before"}))
    await do(inner, Room.amend.on(HALL, {"name": "Great hall"}))
    await do(inner, AddOrUpdateEvent(key, {"ref_id": "after"}))
    await fan.feed()
    question = "SELECT payload::json->>'referenceId' FROM deliveries WHERE webhook = %s AND ordering_key = %s ORDER BY position"
    assert await inner.database.rows(question, (ALL, str(key))) == [("before",), ("before",), ("after",)]


async def test_only_the_next_events_are_notified(inner: Core, fan: Fed, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(11, 16):
        await scheduled(inner, number, days=number, room_id=HALL)
    await fan.feed()
    monkeypatch.setattr(showing, "_SHOWING", showing._SHOWING.replace(f"LIMIT {showing.MOST_AHEAD}", "LIMIT 3"))
    await do(inner, Room.amend.on(HALL, {"name": "Great hall"}))
    end = await inner.database.rows("SELECT max(position) FROM events")
    await fan.feed()
    result = await rows(inner.database)
    assert {UUID(row[2]).int for row in result if (row[0], row[1]) == (ALL, end[0][0])} == {1, 2, 11, 12}

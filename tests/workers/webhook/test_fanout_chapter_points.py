"""Changes of chapter points and their properties are notified as changes of their Event."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.record.kinds.category import Category
from domain.record.kinds.chapter_point import ChapterPoint
from domain.record.kinds.custom_property import CategoryProperty, ChapterPointProperty
from domain.record.record import RegisterRecord
from tests.support.feeding import do, event, record
from tests.workers.webhook.feeding import ALL, ONE, Fed, fed, notifications, rows, together, webhook

FIRST, SECOND = UUID(int=1), UUID(int=2)
POINT, PROPERTY = UUID(int=11), UUID(int=12)
CHANGED = "Updated PRE_LIVE chapterPointsChanged"


def point(owner: UUID = FIRST, key: UUID = POINT, **values: Any) -> RegisterRecord:
    return RegisterRecord(key, ChapterPoint, {"event_id": owner, "start_time": "00:00:01", **values})


def property_(value: str, key: UUID = PROPERTY) -> RegisterRecord:
    return RegisterRecord(key, ChapterPointProperty, {"owner_id": POINT, "category": "a", "key": str(key), "value": value})


@pytest.fixture
async def fan(inner: Core) -> Fed:
    await event(inner, 1)
    await event(inner, 2)
    await webhook(inner, ALL)
    await webhook(inner, ONE, event=FIRST)
    return fed(inner)


async def test_a_point_and_its_properties_in_one_write_are_one_notification(inner: Core, fan: Fed) -> None:
    """The order within the write does not matter."""
    end = await together(inner, property_("x"), point(), property_("y", UUID(int=13)))
    await fan.feed()
    assert await notifications(inner.database) == [f"1 {CHANGED}"]
    assert [row[:3] for row in await rows(inner.database)] == [(ALL, end, str(FIRST)), (ONE, end, str(FIRST))]


@pytest.mark.parametrize("at_once", [1, 2, 1000])
async def test_later_changes_of_points_and_properties_are_notified(inner: Core, fan: Fed, at_once: int) -> None:
    await do(inner, point())
    await do(inner, property_("x"))
    await do(inner, ChapterPoint.amend.on(POINT, {"title": "Goal"}))
    await do(inner, ChapterPointProperty.amend.on(PROPERTY, {"value": "z"}))
    await together(inner, ChapterPointProperty.delete.on(PROPERTY), ChapterPoint.delete.on(POINT))
    await fan.feed(writes_at_once=at_once)
    assert await notifications(inner.database) == [f"1 {CHANGED}"] * 5
    assert await notifications(inner.database, ONE) == [f"1 {CHANGED}"] * 5


@pytest.mark.parametrize("at_once", [1, 1000])
async def test_a_point_registered_again_for_another_event_notifies_that_event(inner: Core, fan: Fed, at_once: int) -> None:
    await do(inner, point())
    await do(inner, property_("x"))
    await together(inner, ChapterPointProperty.delete.on(PROPERTY), ChapterPoint.delete.on(POINT))
    await do(inner, point(SECOND))
    await do(inner, property_("x"))
    await fan.feed(writes_at_once=at_once)
    assert await notifications(inner.database) == [f"1 {CHANGED}"] * 3 + [f"2 {CHANGED}"] * 2
    assert await notifications(inner.database, ONE) == [f"1 {CHANGED}"] * 3


async def test_a_write_to_points_of_two_events_is_one_notification_for_each(inner: Core, fan: Fed) -> None:
    end = await together(inner, point(), point(SECOND, UUID(int=14)), property_("x"))
    await fan.feed()
    rows = await inner.database.rows("SELECT position, ordering_key FROM deliveries WHERE webhook = %s ORDER BY 1", (ALL,))
    assert rows == [(end - 1, str(SECOND)), (end, str(FIRST))]


async def test_the_event_is_shown_as_of_the_write(inner: Core, fan: Fed) -> None:
    """This also holds if the batch has no record of the Event itself."""
    await do(inner, point())
    await do(inner, AddOrUpdateEvent(FIRST, {"ref_id": "later"}))
    await do(inner, ChapterPoint.amend.on(POINT, {"title": "Goal"}))
    await fan.feed(writes_at_once=1)
    question = "SELECT payload::json->>'referenceId' FROM deliveries WHERE webhook = %s ORDER BY position"
    assert await inner.database.rows(question, (ALL,)) == [("",), ("later",), ("later",)]


async def test_points_without_an_event_and_other_properties_notify_nobody(inner: Core, fan: Fed) -> None:
    await do(inner, point(UUID(int=9)))
    await record(inner, Category, 21, name="Sport", label="sport")
    await record(inner, CategoryProperty, 22, owner_id=UUID(int=21), category="a", key="b")
    await fan.feed()
    assert await rows(inner.database) == []


async def test_points_of_a_deleted_event_are_notified(inner: Core, fan: Fed) -> None:
    await do(inner, MediaEvent.delete.on(FIRST))
    await do(inner, point())
    await fan.feed()
    assert await notifications(inner.database) == ["1 Deleted PRE_LIVE", f"1 {CHANGED}"]

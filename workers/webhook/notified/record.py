"""The meaning of the domain events of records, for the Events that show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from domain.event.aggregate import MediaEvent
from domain.kernel.event import DomainEvent
from domain.record.kinds.category import Category
from domain.record.kinds.chapter_point import ChapterPoint
from domain.record.kinds.custom_property import CategoryProperty, ChapterPointProperty
from domain.record.kinds.event_type import EventType
from domain.record.kinds.room import Room
from workers.webhook.policy import NOTHING, EventChange, Notified, Owner


def chapter_points(event: DomainEvent) -> EventChange:
    return EventChange.CHAPTER_POINTS


def metadata(event: DomainEvent) -> EventChange:
    return EventChange.METADATA


def shown(*fields: str) -> Callable[[DomainEvent], EventChange]:
    """Return the meaning of changes to fields that Events show. A new record is not shown by any Event yet, and a record that an
    Event shows is not deleted."""

    def changes(event: DomainEvent) -> EventChange:
        return EventChange.METADATA if event.verb() == "amended" and event.facts().keys() & set(fields) else NOTHING

    return changes


NOTIFIED: Final[Mapping[str, Notified]] = {
    Room.KIND: Notified(changes=shown("name"), shown_by="room_id"),
    EventType.KIND: Notified(changes=shown("name", "colour"), shown_by="event_type_id"),
    Category.KIND: Notified(changes=shown("name", "label", "description"), shown_by="category_ids"),
    CategoryProperty.KIND: Notified(changes=metadata, owner=Owner(CategoryProperty.PARENT, Category.KIND), shown_by="category_ids"),
    ChapterPoint.KIND: Notified(changes=chapter_points, owner=Owner(ChapterPoint.PARENT, MediaEvent.KIND)),
    ChapterPointProperty.KIND: Notified(changes=chapter_points, owner=Owner(ChapterPointProperty.PARENT, ChapterPoint.KIND)),
}

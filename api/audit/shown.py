"""Past states in the words of today's GET: each kind of aggregate as its own resource shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from api.engine import schedule, setting
from api.engine.wire import shown as shown_job
from api.media import client, content_key
from api.media.category.shape import category_object
from api.media.chapter_point.shape import Chapters
from api.media.event.shape import Linked, shaped
from api.media.resource import Shape
from api.media.resources import SHAPES
from domain.client.aggregate import Client
from domain.content_key.aggregate import ContentKey
from domain.job.aggregate import Job
from domain.kernel.aggregate import AggregateRoot
from domain.media_event.aggregate import MediaEvent
from domain.media_event.links import links_of
from domain.records.kinds.category import Category
from domain.records.kinds.chapter_point import ChapterPoint
from domain.records.kinds.custom_property import CategoryProperty, ChapterPointProperty, CustomProperty
from domain.records.kinds.schedule import Schedule
from domain.records.kinds.setting import Setting
from domain.records.record import Record
from projections.audit.queries import AuditQueries
from projections.custom_property.queries import PropertyQueries
from projections.job.queries import JobRow
from projections.media_event.queries import EventRow
from projections.records.queries import RecordQueries, RecordRow

_SHAPES: Final[Mapping[str, Shape]] = {**SHAPES, Setting.KIND: setting.shaped, Schedule.KIND: schedule.shaped}


class PastStates:
    """Shows an aggregate as it stood; names of what it pointed at, and what belonged to it, are those of that moment too."""

    def __init__(self, audit: AuditQueries, properties: PropertyQueries, records: RecordQueries) -> None:
        self._audit = audit
        self._properties = properties
        self._records = records

    async def shown(self, root: AggregateRoot, *, position: int, base_url: str) -> dict[str, Any]:
        """`position` is how far the log had come."""
        if isinstance(root, MediaEvent):
            return await self._event(root, position, base_url)
        if isinstance(root, Client):
            return client.shaped(root.key, root.roles, root.registered_at, root.keys, {})
        if isinstance(root, Job):
            return shown_job(JobRow.past(root))
        if isinstance(root, ContentKey):
            return content_key.shaped(content_key.row_of(root))
        if isinstance(root, Category):
            return category_object(RecordRow.of(root), await self._properties_then(CategoryProperty, root.key, position))
        if isinstance(root, ChapterPoint):
            return await self._chapter_point(RecordRow.of(root), position)
        if isinstance(root, Record):
            return _SHAPES[root.KIND](RecordRow.of(root))
        raise LookupError(root.KIND)

    async def _event(self, event: MediaEvent, position: int, base_url: str) -> dict[str, Any]:
        row = EventRow.of(event)
        records = await self._standing((f"{kind}:{key}" for kind, key in links_of(row.details)), position)
        linked = Linked(
            {one.link: one for one in records},
            {
                one.id: await self._properties_then(CategoryProperty, one.id, position)
                for one in records
                if one.kind == Category.KIND
            },
        )
        return shaped(row, linked, base_url=base_url)

    async def _chapter_point(self, point: RecordRow, position: int) -> dict[str, Any]:
        """With the points that were below it then."""
        ever = await self._records.ever_of_parent(ChapterPoint.KIND, point.details.event_id)
        others = await self._standing((ChapterPoint.stream(key) for key in ever if key != point.id), position)
        chapters = Chapters([*others, point])
        shown = chapters.within(point)
        return chapters.one(point, {key: await self._properties_then(ChapterPointProperty, key, position) for key in shown})

    async def _properties_then(self, kind: type[CustomProperty], owner: str, position: int) -> list[RecordRow]:
        """The properties of an owner at that moment, in the order in which they are always shown."""
        ever = await self._properties.ever_of_owner(kind.KIND, owner)
        found = await self._standing((kind.stream(key) for key in ever), position)
        return sorted(found, key=lambda one: (one.details.category, one.details.key))

    async def _standing(self, streams: Iterable[str], position: int) -> list[RecordRow]:
        found = await self._audit.those_at(streams, position)
        return [RecordRow.of(root) for root in found.values() if isinstance(root, Record) and not root.withdrawn]

"""Use cases of chapter points: add, change and delete them, with their custom properties and the points below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from pydantic.alias_generators import to_camel

from domain.event.ports import EventLookup
from domain.kernel.command import Command
from domain.kernel.errors import FieldError, Malformed, NotFound
from domain.kernel.ids import new_id
from domain.kernel.ports import Executor, Invocation, Outcome, Plan
from domain.record.kinds.chapter_point import EVENT, ChapterPoint, ChapterPointDetails, check_times
from domain.record.kinds.custom_property import ChapterPointProperty
from domain.record.ports import PropertyLookup, RecordLookup, RecordRow
from domain.record.property_upserts import PropertyChange, upserts
from domain.record.record import Record, RegisterRecord

MAX_LEVELS: Final = 32
"""The maximum depth of points below points. A response nests them."""


class ChapterPointHandlers:
    """Adds, changes and deletes chapter points. A plan reads the other points of the Event, so it is made again for every
    attempt."""

    def __init__(self, executor: Executor, records: RecordLookup, *, properties: PropertyLookup, events: EventLookup) -> None:
        self._executor = executor
        self._records = records
        self._properties = properties
        self._events = events

    async def add_or_change(
        self, key: UUID | None, values: Mapping[str, Any], *, properties: Sequence[PropertyChange] = (), invocation: Invocation
    ) -> Outcome[Record]:
        """Change a point or, without a key, add one. Properties are added or changed; none is deleted."""
        point_key = key or new_id()

        async def plan() -> Plan:
            point, above = await self._upsert(point_key, values, new=key is None)
            stored = await self._properties.of_owner(ChapterPointProperty, point_key)
            owned = upserts(ChapterPointProperty, point_key, changes=properties, stored=stored)
            return Plan((*above, *owned.commands, point))

        return await self._executor.execute(plan, invocation=invocation)

    async def _upsert(self, key: UUID, values: Mapping[str, Any], *, new: bool) -> tuple[Command[Any], Sequence[Command[Any]]]:
        """Return the command for the point, and those for the points above it, which must not be moved meanwhile."""
        row = None if new else await self._records.find(ChapterPoint, key)
        if row is None:
            missing = [name for name in ("event_id", "start_time") if name not in values]
            if missing:
                raise Malformed(*(FieldError(to_camel(name), "is required") for name in missing))
        stored = None if row is None else row.details
        event_id = values["event_id"] if stored is None else values.get("event_id", stored.event_id)
        check_times(values, stored)
        parent = values.get("parent_id")
        above = await self._check_parent(key, parent, event_id=event_id) if parent is not None else []
        if await self._events.by_id(event_id) is None:
            raise NotFound(EVENT, str(event_id))
        if row is None:
            return RegisterRecord(key, ChapterPoint, values, new=new), above
        return ChapterPoint.amend.on(key, values).as_planned(), above

    async def _check_parent(self, key: UUID, parent: UUID, *, event_id: UUID) -> list[Command[Any]]:
        """Check that the parent is another point of the same Event and not below this one. The returned commands change nothing;
        they fail if a point above has another parent by the time they are decided."""
        points = {UUID(row.id): row.details.parent_id for row in await self._records.of_parent(ChapterPoint, event_id)}
        if parent not in points:
            raise Malformed.at("parentId", "there is no such chapter point of this Event")
        above = _path_to_top(points, parent)
        if key in above:
            raise Malformed.at("parentId", "is the chapter point itself or one of its descendants")
        if len(above) + _height(points, key) > MAX_LEVELS:
            raise Malformed.at("parentId", f"chapter points may be at most {MAX_LEVELS} levels deep")
        return [ChapterPoint.amend.on(point, {}, still={"parent_id": points.get(point)}).as_planned() for point in above]

    async def delete(self, key: UUID, *, invocation: Invocation) -> Outcome[Record]:
        """Delete a point and its properties. The points below it move up to its parent."""

        async def plan() -> Plan:
            row = await self._records.find(ChapterPoint, key)
            if row is None:
                raise NotFound(ChapterPoint.KIND, str(key))
            new_parent = {"parent_id": row.details.parent_id}
            points = await self._records.of_parent(ChapterPoint, row.details.event_id)
            owned = await self._properties.of_owner(ChapterPointProperty, key)
            return Plan(
                (
                    *(ChapterPointProperty.delete.on(prop.id).as_planned() for prop in owned),
                    *(
                        ChapterPoint.amend.on(child.id, new_parent, still={"parent_id": key}).as_planned()
                        for child in _below(points, key)
                    ),
                    ChapterPoint.delete.on(key, still=new_parent).as_planned(),
                )
            )

        return await self._executor.execute(plan, invocation=invocation)


def _below(points: Sequence[RecordRow[ChapterPointDetails]], key: UUID) -> list[RecordRow[ChapterPointDetails]]:
    return [row for row in points if row.details.parent_id == key]


def _path_to_top(points: Mapping[UUID, UUID | None], start: UUID) -> list[UUID]:
    """Return the point and all above it. The path ends also if two points are below each other."""
    path: list[UUID] = []
    at: UUID | None = start
    while at is not None and at not in path:
        path.append(at)
        at = points.get(at)
    return path


def _height(points: Mapping[UUID, UUID | None], key: UUID) -> int:
    """Return the number of levels from a point to the lowest below it, including its own."""
    depths = [path.index(key) + 1 for point in points if key in (path := _path_to_top(points, point))]
    return max(depths, default=1)

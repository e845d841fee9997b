"""Response models of chapter points, which nest, and of their custom properties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

from pydantic import Field

from api.kernel.wire import Wire
from api.media.custom_property import PropertyClone
from domain.kernel.stream_time import stream_point
from domain.records.kinds.chapter_point import ChapterPoint as ChapterPointRecord
from domain.records.kinds.custom_property import ChapterPointProperty as ChapterPointPropertyRecord
from domain.records.ports import RecordReader
from domain.records.row import RecordRow

Properties = Mapping[str, Sequence[RecordRow]]
"""Custom properties by the id of their owner."""

_NO_DATE = datetime.min.replace(tzinfo=UTC)


class ChapterPointProperty(Wire):
    """A custom property of a chapter point in a response."""

    id: UUID = Field(description="The id of the property.")
    key: str = Field(description="The second half of the pair, which is unique for the owner.")
    category: str = Field(description="The first half of the pair, which is unique for the owner.")
    value: str | None = Field(description="The value; null for none.")
    chapter_point_id: UUID = Field(description="The chapter point that owns the property.")

    @classmethod
    def of(cls, row: RecordRow) -> ChapterPointProperty:
        details = row.details
        return cls.model_construct(
            id=UUID(row.id),
            key=details.key,
            category=details.category,
            value=details.value,
            chapter_point_id=details.owner_id,
        )


class ChapterPointPropertyClone(PropertyClone):
    source_id: UUID = Field(alias="sourceChapterId", description="The source chapter point.")
    target_id: UUID = Field(alias="targetChapterId", description="The target chapter point.")
    custom_properties: list[ChapterPointProperty] = Field(description="The copies in the target.")


class ChapterPoint(Wire):
    """A chapter point in a response, with the points below it."""

    id: UUID = Field(description="The id of the chapter point.")
    event_id: UUID = Field(description="The Event that it belongs to; never changes.")
    parent_id: UUID | None = Field(description="The chapter point above; null for none.")
    reference_id: str = Field(description='An id in another system; "" for none.')
    title: str = Field(description='The title; "" for none.')
    tag: str | None = Field(description="A free text of the caller; null for none.")
    start_time: str = Field(description="Start, as sent.")
    end_time: str | None = Field(description="End, as sent; null for no end.")
    chapter_point_custom_properties: list[ChapterPointProperty] = Field(description="Its custom properties, by category and key.")
    children: list[ChapterPoint] = Field(description="The chapter points below it, by start.")

    @classmethod
    def of(cls, row: RecordRow, properties: Sequence[RecordRow] = (), children: Sequence[ChapterPoint] = ()) -> ChapterPoint:
        details = row.details
        return cls.model_construct(
            id=UUID(row.id),
            event_id=details.event_id,
            parent_id=details.parent_id,
            reference_id=details.reference_id or "",
            title=details.title or "",
            tag=details.tag,
            start_time=details.start_time,
            end_time=details.end_time,
            chapter_point_custom_properties=[ChapterPointProperty.of(owned) for owned in properties],
            children=list(children),
        )


async def chapter_point_with_children(reader: RecordReader, point: RecordRow) -> ChapterPoint:
    """Return the point with its own fields as given, and with its properties and the points below it from `reader`."""
    others = await reader.of_parent(ChapterPointRecord.KIND, point.details.event_id)
    trees = ChapterPointTrees([*(row for row in others if row.id != point.id), point])
    return trees.tree_of(point, await reader.of_owners(ChapterPointPropertyRecord.KIND, trees.ids_of(point)))


def in_order(points: Iterable[RecordRow]) -> list[RecordRow]:
    """Sort points by startTime. Times from the start of the stream come before date-times, because they cannot be compared."""
    return sorted(points, key=_start)


def _start(point: RecordRow) -> tuple[bool, datetime, str, str]:
    start = stream_point(point.details.start_time, field="startTime")
    return start.is_absolute, start.date_time or _NO_DATE, start.time_span, point.id


class ChapterPointTrees:
    """The points of one Event as trees. If two points are parents of each other, one of them is shown at the top, so that every
    point is shown."""

    def __init__(self, points: Iterable[RecordRow]) -> None:
        self._points = in_order(points)
        self._by_id: dict[str | None, RecordRow] = {point.id: point for point in self._points}
        self._children: dict[str | None, list[RecordRow]] = {}
        for point in self._points:
            self._children.setdefault(_parent(point), []).append(point)

    def all(self, properties: Properties) -> list[ChapterPoint]:
        """Return the points without a parent, each with the points below it."""
        trees: dict[str, ChapterPoint] = {}
        shown: set[str] = set()
        for point in self._points:
            if point.id not in shown:
                root = self._root(point)
                trees[root.id] = self._tree(root, properties, shown)
        return [trees[point.id] for point in self._points if point.id in trees]

    def _root(self, point: RecordRow) -> RecordRow:
        """Return the highest point above this one; in a cycle, the first point that is reached twice."""
        passed: set[str] = set()
        while point.id not in passed and (parent := self._by_id.get(_parent(point))) is not None:
            passed.add(point.id)
            point = parent
        return point

    def tree_of(self, point: RecordRow, properties: Properties) -> ChapterPoint:
        return self._tree(point, properties, set())

    def ids_of(self, point: RecordRow) -> list[str]:
        """Return the ids of a point and of all points below it."""
        ids: set[str] = set()
        waiting = [point]
        while waiting:
            row = waiting.pop()
            if row.id not in ids:
                ids.add(row.id)
                waiting += self._children.get(row.id, ())
        return sorted(ids)

    def _tree(self, point: RecordRow, properties: Properties, shown: set[str]) -> ChapterPoint:
        shown.add(point.id)
        children = [self._tree(child, properties, shown) for child in self._children.get(point.id, ()) if child.id not in shown]
        return ChapterPoint.of(point, properties.get(point.id, ()), children)


def _parent(point: RecordRow) -> str | None:
    parent = point.details.parent_id
    return None if parent is None else str(parent)

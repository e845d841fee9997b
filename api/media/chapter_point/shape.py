"""Chapter points and their custom properties as answers show them: decisions.md, "Records the documents only name"; document 2,
"Chapter point custom property"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from domain.media_event.stream_point import stream_point
from projections.records.queries import RecordRow

Properties = Mapping[str, Sequence[RecordRow]]
"""Custom properties by the id of their owner."""

_NO_MOMENT = datetime.min.replace(tzinfo=UTC)


def chapter_property_object(row: RecordRow) -> dict[str, Any]:
    details = row.details
    return {
        "id": row.id,
        "key": details.key,
        "category": details.category,
        "value": details.value,
        "chapterPointId": str(details.owner_id),
    }


def in_order(points: Iterable[RecordRow]) -> list[RecordRow]:
    """By startTime; distances from the stream's start come before moments, with which they cannot be compared."""
    return sorted(points, key=_start)


def _start(point: RecordRow) -> tuple[bool, datetime, str, str]:
    start = stream_point(point.details.start_time, field="startTime")
    return start.is_absolute, start.date_time or _NO_MOMENT, start.time_span, point.id


class Chapters:
    """The points of one Event: a forest, of which every tree can be shown. Should two requests at once have put two points below
    each other, one of them is shown at the top, so that no point is ever lost."""

    def __init__(self, points: Iterable[RecordRow]) -> None:
        self._points = in_order(points)
        self._by_id: dict[str | None, RecordRow] = {point.id: point for point in self._points}
        self._children: dict[str | None, list[RecordRow]] = {}
        for point in self._points:
            self._children.setdefault(_parent(point), []).append(point)

    def top(self, properties: Properties) -> list[dict[str, Any]]:
        """All points, each below its parent."""
        trees: dict[str, dict[str, Any]] = {}
        shown: set[str] = set()
        for point in self._points:
            if point.id not in shown:
                root = self._root(point)
                trees[root.id] = self._tree(root, properties, shown)
        return [trees[point.id] for point in self._points if point.id in trees]

    def _root(self, point: RecordRow) -> RecordRow:
        """The highest point above this one; of a circle the one at which it closes."""
        passed: set[str] = set()
        while point.id not in passed and (parent := self._by_id.get(_parent(point))) is not None:
            passed.add(point.id)
            point = parent
        return point

    def one(self, point: RecordRow, properties: Properties) -> dict[str, Any]:
        return self._tree(point, properties, set())

    def within(self, point: RecordRow) -> list[str]:
        """The ids of a point and all below it."""
        shown: set[str] = set()
        self._tree(point, {}, shown)
        return sorted(shown)

    def _tree(self, point: RecordRow, properties: Properties, shown: set[str]) -> dict[str, Any]:
        shown.add(point.id)
        details = point.details
        return {
            "id": point.id,
            "eventId": str(details.event_id),
            "parentId": _parent(point),
            "referenceId": details.reference_id or "",
            "title": details.title or "",
            "tag": details.tag,
            "startTime": details.start_time,
            "endTime": details.end_time,
            "chapterPointCustomProperties": [chapter_property_object(row) for row in properties.get(point.id, ())],
            "children": [
                self._tree(child, properties, shown) for child in self._children.get(point.id, ()) if child.id not in shown
            ],
        }


def _parent(point: RecordRow) -> str | None:
    parent = point.details.parent_id
    return None if parent is None else str(parent)

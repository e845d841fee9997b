"""The trees of the chapter points of an Event, also when two points lie below each other."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from api.media.chapter_point import ChapterPoint as Shown
from api.media.chapter_point import ChapterPointTrees
from domain.record.kinds.chapter_point import ChapterPoint, ChapterPointDetails
from domain.record.ports import RecordRow

NOON = datetime(2031, 1, 2, 12, 0, tzinfo=UTC)


def point(number: int, parent: int | None, start: str = "00:00:00") -> RecordRow[ChapterPointDetails]:
    parent_id = None if parent is None else UUID(int=parent)
    details = ChapterPointDetails(event_id=UUID(int=99), parent_id=parent_id, start_time=start)
    return RecordRow(ChapterPoint.KIND, str(UUID(int=number)), 1, details, NOON, NOON)


def numbers(trees: list[Shown]) -> list[Any]:
    return [(tree.id.int, numbers(tree.children)) for tree in trees]


def test_every_point_is_below_its_parent_by_start_and_then_by_id() -> None:
    points = [point(3, 1), point(2, 1), point(1, None, "00:00:05"), point(4, None, "2031-01-02"), point(5, None, "00:00:05.100")]
    assert numbers(ChapterPointTrees(points).all({})) == [(1, [(2, []), (3, [])]), (5, []), (4, [])]
    assert ChapterPointTrees(points).ids_of(points[2]) == [str(UUID(int=number)) for number in (1, 2, 3)]


def test_every_point_of_a_circle_is_shown() -> None:
    points = [point(1, 3, "00:00:02"), point(2, 1, "00:00:03"), point(3, 2, "00:00:01"), point(4, 3), point(5, None), point(6, 6)]
    assert numbers(ChapterPointTrees(points).all({})) == [(5, []), (6, []), (3, [(4, []), (1, [(2, [])])])]
    assert numbers([ChapterPointTrees(points).tree_of(points[1], {})]) == [(2, [(3, [(4, []), (1, [])])])]

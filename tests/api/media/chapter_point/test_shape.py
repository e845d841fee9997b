"""How the points of an Event become trees, also where two requests at once have made a circle of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from api.media.chapter_point.shape import Chapters
from domain.records.kinds.chapter_point import ChapterPoint, ChapterPointDetails
from projections.records.queries import RecordRow

NOON = datetime(2031, 1, 2, 12, 0, tzinfo=UTC)


def point(number: int, parent: int | None, start: str = "00:00:00") -> RecordRow:
    parent_id = None if parent is None else UUID(int=parent)
    details = ChapterPointDetails(event_id=UUID(int=99), parent_id=parent_id, start_time=start)
    return RecordRow(ChapterPoint.KIND, str(UUID(int=number)), 1, details, NOON, NOON)


def numbers(trees: list[dict[str, Any]]) -> list[Any]:
    return [(UUID(tree["id"]).int, numbers(tree["children"])) for tree in trees]


def test_every_point_is_below_its_parent_by_start_and_then_by_id() -> None:
    points = [point(3, 1), point(2, 1), point(1, None, "00:00:05"), point(4, None, "2031-01-02"), point(5, None, "00:00:05.100")]
    assert numbers(Chapters(points).top({})) == [(1, [(2, []), (3, [])]), (5, []), (4, [])]
    assert Chapters(points).within(points[2]) == [str(UUID(int=number)) for number in (1, 2, 3)]


def test_no_point_of_a_circle_is_lost() -> None:
    points = [point(1, 3, "00:00:02"), point(2, 1, "00:00:03"), point(3, 2, "00:00:01"), point(4, 3), point(5, None), point(6, 6)]
    assert numbers(Chapters(points).top({})) == [(5, []), (6, []), (3, [(4, []), (1, [(2, [])])])]
    assert numbers([Chapters(points).one(points[1], {})]) == [(2, [(3, [(4, []), (1, [])])])]

"""Rules of chapter points; see docs/reference/api/chapter-points.md."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from domain.kernel.errors import Conflict, Malformed
from domain.record.kinds.chapter_point import ChapterPoint
from domain.record.record import RegisterRecord
from tests.domain.scenario import Scenario, fact, given

KEY = str(UUID(int=7))
EVENT, OTHER = UUID(int=1), UUID(int=2)
REGISTERED, AMENDED, _, _ = ChapterPoint.EVENTS


def a_point(**more: Any) -> Scenario[Any]:
    return given(ChapterPoint, KEY, fact(REGISTERED, event_id=EVENT, start_time="00:00:10", **more))


def test_a_point_stays_with_its_event() -> None:
    a_point().when(ChapterPoint.amend.on(KEY, {"event_id": EVENT})).then_nothing()
    a_point().when(ChapterPoint.amend.on(KEY, {"event_id": OTHER, "title": "x"})).then_refused(Conflict)


@pytest.mark.parametrize("end", ["00:00:10", "00:00:10.000", "00:00:11", "2001-01-01"])
def test_a_point_may_end_when_it_starts_or_later_or_when_the_times_cannot_be_compared(end: str) -> None:
    a_point().when(ChapterPoint.amend.on(KEY, {"end_time": end})).then(fact(AMENDED, end_time=end))


@pytest.mark.parametrize(
    "changes",
    [{"end_time": "00:00:09.999"}, {"start_time": "00:00:20.001"}, {"start_time": "2031-01-02", "end_time": "2031-01-01"}],
)
def test_a_point_does_not_end_before_it_starts(changes: dict[str, str]) -> None:
    refused = a_point(end_time="00:00:20").when(ChapterPoint.amend.on(KEY, changes)).then_refused(Malformed)
    assert [error.field for error in refused.errors] == ["endTime"]


def test_a_new_point_does_not_end_before_it_starts() -> None:
    values = {"event_id": EVENT, "start_time": "00:00:10", "end_time": "00:00:09"}
    nothing: Scenario[Any] = given(ChapterPoint, KEY)
    nothing.when(RegisterRecord(KEY, ChapterPoint, values)).then_refused(Malformed)

"""The times of a schedule: a write may not leave an end before its start."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.checks import PERIODS
from domain.event.commands import AddOrUpdateEvent, AmendEvent, ComposeEvent, Replacement
from domain.event.facets import Particulars
from domain.kernel.command import Command
from domain.kernel.errors import Malformed
from tests.domain.event.events_given import KEY, an_event, deleted, nothing
from tests.domain.scenario import NOW, Fact, fact

HOUR = timedelta(hours=1)
Write = Callable[[dict[str, Any]], Command[MediaEvent]]
WRITES: list[Write] = [
    lambda values: AddOrUpdateEvent(KEY, values),
    lambda values: AmendEvent(KEY, tuple(Replacement(name, value) for name, value in values.items())),
    lambda values: ComposeEvent(KEY, job=None, changes=values),
]


def changed(**times: datetime | None) -> Fact:
    return fact(next(facet for facet in events.FACETS if times.keys() <= facet.model_fields.keys()), **times)


@pytest.mark.parametrize(("start", "end"), PERIODS)
@pytest.mark.parametrize("write", WRITES)
def test_a_write_that_leaves_an_end_before_its_start_is_bad_input(write: Write, start: str, end: str) -> None:
    given = an_event(changed(**{start: NOW, end: NOW + HOUR}))
    too_early = f"{to_camel(end)}: must not be before {to_camel(start)}"
    assert str(given.when(write({start: NOW, end: NOW - HOUR})).then_refused(Malformed)) == too_early
    assert str(given.when(write({end: NOW - HOUR})).then_refused(Malformed)) == too_early
    late = given.when(write({start: NOW + 2 * HOUR})).then_refused(Malformed)
    assert str(late) == f"{to_camel(start)}: must not be after {to_camel(end)}"
    assert str(nothing().when(AddOrUpdateEvent(KEY, {start: NOW, end: NOW - HOUR})).then_refused(Malformed)) == too_early


@pytest.mark.parametrize(("start", "end"), PERIODS)
def test_a_write_that_leaves_no_end_before_its_start_is_taken(start: str, end: str) -> None:
    given = an_event(changed(**{start: NOW, end: NOW + HOUR}))
    for write in ({start: NOW + 2 * HOUR, end: NOW + 3 * HOUR}, {start: NOW + 2 * HOUR, end: None}, {start: NOW + HOUR}):
        given.when(AddOrUpdateEvent(KEY, write)).then(changed(**write))


@pytest.mark.parametrize(("start", "end"), PERIODS)
def test_a_stored_event_with_such_times_goes_on_working(start: str, end: str) -> None:
    given = an_event(changed(**{start: NOW, end: NOW - HOUR}))
    for write in WRITES[:2]:
        given.when(write({"title": "Semi-final"})).then(fact(events.Described, title="Semi-final"))
        given.when(write({end: NOW + HOUR})).then(changed(**{end: NOW + HOUR}))
        given.when(write({start: NOW})).then_refused(Malformed)


def test_bad_times_are_reported_before_a_deleted_event() -> None:
    deleted().when(AddOrUpdateEvent(KEY, {"scheduled_start": NOW, "scheduled_end": NOW - HOUR})).then_refused(Malformed)


def test_every_time_that_a_client_writes_belongs_to_a_period() -> None:
    times = {name for name, member in Particulars.model_fields.items() if member.annotation == datetime | None}
    assert {name for period in PERIODS for name in period} == times

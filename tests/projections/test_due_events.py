"""Tests of the Events that the schedule is to start or to stop, at any time of the clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.events import Rescheduled
from domain.event.values import EventState, Trigger
from domain.kernel.command import Command
from projections.event.due_events import (
    AT_ONCE,
    COMPOSE,
    HIDE_RECORDING,
    MOST_COUNTED,
    PROVISION,
    PUBLISH,
    SHOW_RECORDING,
    START,
    STOP,
    TAKE,
    TERMINATE,
    WITHDRAW,
    DueEvents,
)
from tests.support.clock import NOON, HandClock
from tests.support.feeding import do, event

START_AT, END_AT = NOON + timedelta(hours=1), NOON + timedelta(hours=3)
TICK = timedelta(microseconds=1)
LIVE = EventState.LIVE_PUBLISHED
NONE = dict.fromkeys((START, STOP, PUBLISH, WITHDRAW, SHOW_RECORDING, HIDE_RECORDING, TAKE, PROVISION, TERMINATE, COMPOSE), 0)


@dataclass(frozen=True)
class EndEarly(Command[MediaEvent]):
    """Append what no write may say any more: an end before the start."""

    end: datetime

    def kind(self) -> type[MediaEvent]:
        return MediaEvent

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root._trigger(Rescheduled, at=at, scheduled_end=self.end)


async def planned(inner: Core, number: int, **changes: Any) -> UUID:
    times = {"scheduled_start": START_AT, "scheduled_end": END_AT}
    return await event(inner, number, **{"auto_start": True, "auto_end": True, **times, **changes})


@pytest.mark.parametrize(
    ("at", "starts"),
    [
        (START_AT - TICK, False),
        (START_AT, True),
        (END_AT - TICK, True),
        (END_AT, False),
        (END_AT + timedelta(days=3650), False),
        (NOON - timedelta(days=3650), False),
    ],
)
async def test_an_event_is_to_start_between_its_start_and_its_end(inner: Core, at: datetime, starts: bool) -> None:
    key = await planned(inner, 1)
    due_events = await DueEvents(inner.database).due(at=at)
    assert [(row.key, row.due, row.end, row.action) for row in due_events] == [(key, START_AT, END_AT, START)] * starts
    assert await DueEvents(inner.database).counts(at=at) == {**NONE, START: int(starts)}


@pytest.mark.parametrize(("at", "stops"), [(START_AT, False), (END_AT - TICK, False), (END_AT, True)])
async def test_a_live_event_is_to_stop_from_its_end_on(inner: Core, at: datetime, stops: bool) -> None:
    key = await planned(inner, 1, state=LIVE)
    due_events = await DueEvents(inner.database).due(at=at)
    assert [(row.key, row.due, row.action) for row in due_events] == [(key, END_AT, STOP)] * stops
    assert await DueEvents(inner.database).counts(at=at) == {**NONE, STOP: int(stops)}


@pytest.mark.parametrize(
    ("state", "at", "actions"),
    [
        (EventState.VOD_PRIVATE, START_AT - TICK, []),
        (EventState.VOD_PRIVATE, START_AT, [PUBLISH]),
        (EventState.VOD_PRIVATE, END_AT - TICK, [PUBLISH]),
        (EventState.VOD_PRIVATE, END_AT, []),
        (EventState.VOD_PUBLIC, END_AT - TICK, []),
        (EventState.VOD_PUBLIC, END_AT, [WITHDRAW]),
    ],
)
async def test_an_event_is_published_and_withdrawn_by_its_window(
    inner: Core, state: EventState, at: datetime, actions: list[str]
) -> None:
    key = await event(inner, 1, published_start=START_AT, published_end=END_AT, state=state)
    due_rows = await DueEvents(inner.database).due(at=at)
    times = {PUBLISH: START_AT, WITHDRAW: END_AT}
    assert [(row.key, row.action, row.due) for row in due_rows] == [(key, action, times[action]) for action in actions]
    assert [row.end for row in due_rows if row.action == PUBLISH] == [END_AT] * actions.count(PUBLISH)
    assert await DueEvents(inner.database).counts(at=at) == {**NONE, **dict.fromkeys(actions, 1)}
    assert await DueEvents(inner.database).next_in(at=START_AT - TICK) == pytest.approx(
        TICK.total_seconds() if state is EventState.VOD_PRIVATE else (END_AT - START_AT + TICK).total_seconds()
    )


@pytest.mark.parametrize(
    ("state", "at", "actions"),
    [
        (EventState.STOPPED, START_AT - TICK, []),
        (EventState.STOPPED, START_AT, [SHOW_RECORDING]),
        (EventState.STOPPED, END_AT, []),
        (EventState.INSTANT_VOD, END_AT - TICK, []),
        (EventState.INSTANT_VOD, END_AT, [HIDE_RECORDING]),
    ],
)
async def test_a_recorded_stream_is_shown_and_hidden_at_its_times(
    inner: Core, clock: HandClock, state: EventState, at: datetime, actions: list[str]
) -> None:
    key = await event(inner, 1, instant_vod_start=START_AT, instant_vod_end=END_AT, state=LIVE)
    clock.forward(minutes=1)
    for following in dict.fromkeys((EventState.STOPPED, state)):
        await do(inner, MediaEvent.change_state.on(key, following, trigger=Trigger.OPERATOR))
    due_rows = await DueEvents(inner.database).due(at=at)
    times = {SHOW_RECORDING: START_AT, HIDE_RECORDING: END_AT}
    assert [(row.key, row.action, row.due) for row in due_rows] == [(key, action, times[action]) for action in actions]


@pytest.mark.parametrize("state", [EventState.VOD_PRIVATE, EventState.VOD_PUBLIC])
async def test_windows_from_before_the_update_that_made_them_act_do_nothing(inner: Core, state: EventState) -> None:
    await event(inner, 1, published_start=START_AT, published_end=END_AT, state=state)
    at = START_AT if state is EventState.VOD_PRIVATE else END_AT
    await inner.database.execute("INSERT INTO availability (since) VALUES (%s)", (at + TICK,))
    assert await DueEvents(inner.database).due(at=at) == []
    await inner.database.execute("UPDATE availability SET since = %s", (at,))
    assert len(await DueEvents(inner.database).due(at=at)) == 1


async def test_without_an_end_it_is_to_start_for_ever(inner: Core) -> None:
    key = await planned(inner, 1, scheduled_end=None)
    [due_events] = await DueEvents(inner.database).due(at=START_AT + timedelta(days=3650))
    assert (due_events.key, due_events.due, due_events.end) == (key, START_AT, None)
    assert due_events.late == 3650 * 86_400


async def test_the_longest_due_come_first_and_resting_ones_not_at_all(inner: Core) -> None:
    for number in range(1, 6):
        await planned(inner, number, scheduled_start=START_AT - timedelta(minutes=number))
    for number in range(11, 14):
        await planned(inner, number, state=LIVE, scheduled_start=None, scheduled_end=START_AT - timedelta(minutes=number))
    due = DueEvents(inner.database)
    resting = [row.attempt for row in await due.due(at=START_AT) if row.key.int in (4, 12)]
    due_events = await due.due(resting=resting, at=START_AT)
    assert [row.key.int for row in due_events] == [5, 3, 2, 1, 13, 11]
    assert [row.late for row in due_events] == [number * 60 for number in (5, 3, 2, 1, 13, 11)]


async def test_a_deleted_event_is_never_due(inner: Core) -> None:
    for number, state in ((1, EventState.PRE_LIVE), (2, LIVE)):
        await do(inner, MediaEvent.delete.on(await planned(inner, number, state=state)))
    due = DueEvents(inner.database)
    for at in (START_AT, END_AT):
        assert await due.due(at=at) == []
    assert await due.next_in(at=NOON) is None


async def test_past_times_of_a_restored_event_are_not_due(inner: Core, clock: HandClock) -> None:
    flags = {"scheduled_provision_at": START_AT, "auto_provision_infrastructure": True}
    before, after = [await planned(inner, number, **flags) for number in (1, 2)]
    for key in (before, after):
        await do(inner, MediaEvent.delete.on(key))
    await do(inner, MediaEvent.restore.on(before))
    clock.now = START_AT
    await do(inner, MediaEvent.restore.on(after))
    assert {(row.key, row.action) for row in await DueEvents(inner.database).due(at=START_AT)} == {
        (before, START),
        (before, PROVISION),
    }


async def test_an_end_before_the_start_is_stored_and_starts_nothing(inner: Core) -> None:
    """Older events hold such times, and a range of times that ends before it begins is an error of PostgreSQL."""
    key = await planned(inner, 1, scheduled_end=None)
    await do(inner, EndEarly(key, START_AT - timedelta(hours=1)))
    due = DueEvents(inner.database)
    assert [await due.due(at=at) for at in (START_AT - timedelta(minutes=30), START_AT)] == [[], []]


async def test_one_round_takes_a_limited_number(inner: Core) -> None:
    for number in range(1, AT_ONCE + 3):
        await planned(inner, number)
    due = DueEvents(inner.database)
    assert len(await due.due(at=START_AT)) == AT_ONCE
    assert (await due.counts(at=START_AT))[START] == AT_ONCE + 2 < MOST_COUNTED


async def test_the_next_time_is_one_that_has_not_come(inner: Core) -> None:
    due = DueEvents(inner.database)
    assert await due.next_in(at=NOON) is None
    await planned(inner, 1)
    await planned(inner, 2, state=LIVE)
    assert await due.next_in(at=NOON) == 3600
    assert await due.next_in(at=START_AT) == 7200
    assert await due.next_in(at=END_AT) is None


async def test_the_clock_of_the_database_counts_and_not_ours(inner: Core, clock: HandClock) -> None:
    clock.now = NOON + timedelta(days=3650)
    key = await planned(inner, 1, scheduled_start=datetime(2020, 1, 1, tzinfo=NOON.tzinfo), scheduled_end=None)
    await planned(inner, 2, scheduled_start=clock.now, scheduled_end=None)
    assert [row.key for row in await DueEvents(inner.database).due()] == [key]


async def provisioning(inner: Core, number: int, **changes: Any) -> UUID:
    """Register an Event whose infrastructure is provisioned and terminated when other Events start and end."""
    times = {"scheduled_provision_at": START_AT, "scheduled_terminate_at": END_AT}
    flags = {"auto_provision_infrastructure": True, "auto_terminate_infrastructure": True}
    return await event(inner, number, **{**flags, **times, **changes})


@pytest.mark.parametrize(
    ("at", "actions"),
    [
        (START_AT - TICK, []),
        (START_AT, [PROVISION]),
        (END_AT - TICK, [PROVISION]),
        (END_AT, [TERMINATE]),
        (END_AT + timedelta(days=3650), [TERMINATE]),
    ],
)
async def test_infrastructure_is_due_until_its_termination_is(inner: Core, at: datetime, actions: list[str]) -> None:
    key = await provisioning(inner, 1)
    due = DueEvents(inner.database)
    times = {PROVISION: START_AT, TERMINATE: END_AT}
    assert [(row.key, row.action, row.due) for row in await due.due(at=at)] == [(key, action, times[action]) for action in actions]
    assert await due.counts(at=at) == {**NONE, **dict.fromkeys(actions, 1)}


async def test_infrastructure_without_its_flag_or_of_a_deleted_event_is_never_due(inner: Core) -> None:
    await provisioning(inner, 1, auto_provision_infrastructure=False, auto_terminate_infrastructure=False)
    await do(inner, MediaEvent.delete.on(await provisioning(inner, 2)))
    due = DueEvents(inner.database)
    assert [await due.due(at=at) for at in (START_AT, END_AT)] == [[], []]
    assert await due.next_in(at=NOON) is None


async def test_a_rest_ends_when_the_event_changes_and_is_for_one_action(inner: Core) -> None:
    key = await provisioning(inner, 1, scheduled_start=START_AT, auto_start=True)
    due = DueEvents(inner.database)
    [resting] = [row.attempt for row in await due.due(at=START_AT) if row.action == PROVISION]
    assert [row.action for row in await due.due(resting=[resting], at=START_AT)] == [START]
    await do(inner, AddOrUpdateEvent(key, {"title": "Final"}))
    assert [row.action for row in await due.due(resting=[resting], at=START_AT)] == [START, PROVISION]


async def test_the_next_time_may_be_one_of_infrastructure(inner: Core) -> None:
    await provisioning(inner, 1)
    due = DueEvents(inner.database)
    assert [await due.next_in(at=at) for at in (NOON, START_AT, END_AT)] == [3600, 7200, None]

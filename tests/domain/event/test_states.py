"""PUT /event/state, forcestop, flow/add, flow/protection: the states of an Event and the times that they set."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.commands import flow_task
from domain.event.values import EventDetails, EventState, Mp4State, Trigger
from domain.kernel.command import Command
from domain.kernel.errors import Malformed, NotFound, Refused
from tests.domain.event.events_given import KEY, an_event, deleted, in_state, moved, nothing
from tests.domain.scenario import NOW, THEN, fact

PRE_LIVE, UNPUBLISHED, PUBLISHED = EventState.PRE_LIVE, EventState.LIVE_UNPUBLISHED, EventState.LIVE_PUBLISHED
STOPPED, PRIVATE, PUBLIC = EventState.STOPPED, EventState.VOD_PRIVATE, EventState.VOD_PUBLIC
QUIET = [state for state in EventState if state not in (UNPUBLISHED, PUBLISHED, STOPPED)]


def go(state: EventState) -> Command[MediaEvent]:
    return MediaEvent.change_state.on(KEY, state, trigger=Trigger.OPERATOR)


@pytest.mark.parametrize("state", [state for state in QUIET if state is not PRE_LIVE])
def test_every_state_is_reached_at_once_and_sets_no_time(state: EventState) -> None:
    event = an_event().when(go(state)).then(moved(PRE_LIVE, state))
    assert event.details.state is state


@pytest.mark.parametrize("state", EventState)
def test_every_state_is_left_at_once(state: EventState) -> None:
    target = EventState.SUSPENDED if state is not EventState.SUSPENDED else PRE_LIVE
    in_state(state).when(go(target)).then(moved(state, target))


@pytest.mark.parametrize("state", EventState)
def test_the_same_state_changes_nothing(state: EventState) -> None:
    event = in_state(state).when(go(state)).then_nothing()
    assert event.modified_on == THEN


# A name, the events before, the new state, and the times that the change sets. See docs/reference/api/events.md.
TIMES: list[tuple[str, list[Any], EventState, dict[str, datetime]]] = [
    ("going live sets the start", [], UNPUBLISHED, {"actual_live_start": NOW}),
    ("going live in public sets both starts", [], PUBLISHED, {"actual_live_start": NOW, "published_start": NOW}),
    (
        "publishing a live Event keeps its start",
        [moved(PRE_LIVE, UNPUBLISHED, actual_live_start=THEN)],
        PUBLISHED,
        {"published_start": NOW},
    ),
    (
        "live again keeps the first start",
        [moved(PRE_LIVE, UNPUBLISHED, actual_live_start=THEN), moved(UNPUBLISHED, STOPPED, actual_live_end=THEN)],
        UNPUBLISHED,
        {},
    ),
    (
        "a planned published start does not change",
        [fact(events.PublicationWindowChanged, published_start=THEN)],
        PUBLISHED,
        {"actual_live_start": NOW},
    ),
    ("stopping an Event that was never live sets its end", [], STOPPED, {"actual_live_end": NOW}),
    (
        "stopping an unpublished Event sets one end",
        [moved(PRE_LIVE, UNPUBLISHED, actual_live_start=THEN)],
        STOPPED,
        {"actual_live_end": NOW},
    ),
    (
        "stopping a published Event sets both ends",
        [moved(PRE_LIVE, PUBLISHED, actual_live_start=THEN, published_start=THEN)],
        STOPPED,
        {"actual_live_end": NOW, "published_end": NOW},
    ),
    (
        "a publication in the future is not ended",
        [fact(events.PublicationWindowChanged, published_start=NOW + timedelta(days=1))],
        STOPPED,
        {"actual_live_end": NOW},
    ),
    (
        "stopping again changes the ends",
        [
            moved(PRE_LIVE, PUBLISHED, actual_live_start=THEN, published_start=THEN),
            moved(PUBLISHED, STOPPED, actual_live_end=THEN, published_end=THEN),
            moved(STOPPED, UNPUBLISHED),
        ],
        STOPPED,
        {"actual_live_end": NOW, "published_end": NOW},
    ),
]


@pytest.mark.parametrize(("history", "state", "times"), [row[1:] for row in TIMES], ids=[row[0] for row in TIMES])
def test_the_times_that_a_state_sets(history: list[Any], state: EventState, times: dict[str, datetime]) -> None:
    given = an_event(*history)
    assert given.root is not None
    event = given.when(go(state)).then(moved(given.root.details.state, state, **times))
    assert {name: getattr(event.details, name) for name in times} == times


def test_a_command_on_an_unknown_or_deleted_event_is_refused() -> None:
    commands: list[Command[MediaEvent]] = [
        go(PUBLISHED),
        MediaEvent.force_stop.on(KEY),
        MediaEvent.change_protection.on(KEY, PUBLIC),
        flow_task(KEY, "{}"),
    ]
    for command in commands:
        nothing().when(command).then_refused(NotFound)
        deleted().when(command).then_refused(NotFound)


class TestForceStop:
    def test_it_stops_an_event_that_is_live_and_sets_its_ends(self) -> None:
        given = an_event(moved(PRE_LIVE, PUBLISHED, actual_live_start=THEN, published_start=THEN))
        stopped = given.when(MediaEvent.force_stop.on(KEY)).then(
            fact(events.ForceStopped, previous=PUBLISHED, actual_live_end=NOW, published_end=NOW)
        )
        assert stopped.details.state is STOPPED
        assert (stopped.details.actual_live_end, stopped.details.published_end) == (NOW, NOW)

    def test_it_is_recorded_for_a_stopped_event_because_the_encoder_may_run(self) -> None:
        given = an_event(moved(PRE_LIVE, STOPPED, actual_live_end=THEN))
        stopped = given.when(MediaEvent.force_stop.on(KEY)).then(fact(events.ForceStopped, previous=STOPPED))
        assert stopped.details.actual_live_end == THEN

    @pytest.mark.parametrize("state", [state for state in EventState if state is not STOPPED])
    def test_it_stops_any_state(self, state: EventState) -> None:
        stopped = (
            in_state(state).when(MediaEvent.force_stop.on(KEY)).then(fact(events.ForceStopped, previous=state, actual_live_end=NOW))
        )
        assert stopped.details.state is STOPPED


class TestProtection:
    @pytest.mark.parametrize(("before", "after"), [(PRIVATE, PUBLIC), (PUBLIC, PRIVATE)])
    def test_it_moves_an_on_demand_event_between_private_and_public(self, before: EventState, after: EventState) -> None:
        event = (
            in_state(before)
            .when(MediaEvent.change_protection.on(KEY, after))
            .then(fact(events.StateChanged, state=after, previous=before, trigger=Trigger.PROTECTION))
        )
        assert event.details.state is after

    @pytest.mark.parametrize("state", [PRIVATE, PUBLIC])
    def test_the_same_protection_changes_nothing(self, state: EventState) -> None:
        in_state(state).when(MediaEvent.change_protection.on(KEY, state)).then_nothing()

    @pytest.mark.parametrize("state", [state for state in EventState if state not in (PRIVATE, PUBLIC)])
    def test_an_event_that_is_not_on_demand_is_refused(self, state: EventState) -> None:
        in_state(state).when(MediaEvent.change_protection.on(KEY, PUBLIC)).then_refused(Refused)

    @pytest.mark.parametrize("state", [state for state in EventState if state not in (PRIVATE, PUBLIC)])
    def test_another_state_is_refused_as_protection(self, state: EventState) -> None:
        in_state(PRIVATE).when(MediaEvent.change_protection.on(KEY, state)).then_refused(Refused)


class TestFlowTask:
    def test_the_task_is_stored_and_no_state_changes(self) -> None:
        event = an_event().when(flow_task(KEY, '{"a": 1}')).then(fact(events.FlowTaskChanged, task_engine_json='{"a": 1}'))
        assert event.details.task_engine_json == '{"a": 1}'

    def test_the_given_states_are_set(self) -> None:
        an_event().when(flow_task(KEY, "{}", state=PRIVATE, mp4_state=Mp4State.GENERATING)).then(
            fact(events.FlowTaskChanged, task_engine_json="{}"),
            fact(events.StateChanged, state=PRIVATE, previous=PRE_LIVE, trigger=Trigger.FLOW),
            fact(events.Mp4StateChanged, mp4_state=Mp4State.GENERATING, previous=Mp4State.NONE),
        )

    def test_the_same_task_and_states_change_nothing(self) -> None:
        given = in_state(PRIVATE, fact(events.FlowTaskChanged, task_engine_json="{}"))
        given.when(flow_task(KEY, "{}", state=PRIVATE, mp4_state=Mp4State.NONE)).then_nothing()

    def test_a_task_with_invalid_json_sets_no_state(self) -> None:
        refused = an_event().when(flow_task(KEY, "{", state=PRIVATE)).then_refused(Malformed)
        assert [error.field for error in refused.errors] == ["task_engine_json"]

    def test_bad_input_is_reported_before_a_missing_event(self) -> None:
        nothing().when(flow_task(KEY, "{")).then_refused(Malformed)
        deleted().when(flow_task(KEY, "{")).then_refused(Malformed)


STATES = """
    PRE_LIVE LIVE_UNPUBLISHED LIVE_PUBLISHED SUSPENDED STOPPED INSTANT_VOD INSTANT_VOD_BACKUP INSTANT_VOD_DELETE PRE_VOD
    VOD_INGESTING VOD_PRIVATE VOD_PUBLIC REMIX_GENERATING REMIX_PRIVATE REMIX_PUBLIC REMIX_ERROR VOD_ERROR ARCHIVER_PRIVATE
    ARCHIVER_PUBLIC COMPOSE_GENERATING COMPOSE_PUBLIC COMPOSE_PRIVATE COMPOSE_WAITING COMPOSE_ERROR LIVE_STARTING LIVE_STOPPING
"""


def test_the_states_have_these_numbers() -> None:
    """Numbers are stored in the log, so they never change."""
    assert [state.name for state in sorted(EventState)] == STATES.split()
    assert sorted(EventState) == list(range(26))
    assert {state.name: state.value for state in Mp4State} == {"NONE": 0, "AVAILABLE": 1, "GENERATING": 2, "FAILED": 4}


def test_display_times_are_published_else_scheduled_else_actual() -> None:
    a, b, c = THEN, NOW, NOW + timedelta(hours=1)
    assert EventDetails().display_start is None
    assert EventDetails().display_end is None
    assert EventDetails(actual_live_start=a, actual_live_end=b).display_start == a
    assert EventDetails(actual_live_start=a, scheduled_start=b).display_start == b
    assert EventDetails(actual_live_start=a, scheduled_start=b, published_start=c).display_start == c
    assert EventDetails(actual_live_start=a, actual_live_end=b).display_end == b
    assert EventDetails(actual_live_end=a, scheduled_end=b).display_end == b
    assert EventDetails(actual_live_end=a, scheduled_end=b, published_end=c).display_end == c

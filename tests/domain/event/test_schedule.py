"""autoStart, autoPublish and autoEnd: when the schedule starts and stops an Event, and when it does not."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import LIVE, STREAMING, EventDetails, EventState, Trigger
from domain.kernel.command import Command
from tests.domain.event.events_given import KEY, an_event, moved
from tests.domain.scenario import NOW, THEN, Fact, Scenario, fact

PRE_LIVE, UNPUBLISHED, PUBLISHED = EventState.PRE_LIVE, EventState.LIVE_UNPUBLISHED, EventState.LIVE_PUBLISHED
STARTING, STOPPED = EventState.LIVE_STARTING, EventState.STOPPED
START, END = NOW - timedelta(minutes=1), NOW + timedelta(hours=1)
LATER = timedelta(hours=3)


def planned(*since: Fact, start: datetime | None = START, end: datetime | None = END, **flags: bool) -> Scenario[MediaEvent]:
    automation = fact(events.AutomationChanged, **({"auto_start": True, "auto_end": True} | flags))
    return an_event(fact(events.Rescheduled, scheduled_start=start, scheduled_end=end), automation, *since)


def by_schedule(previous: EventState, state: EventState, **times: datetime) -> Fact:
    return fact(events.StateChanged, state=state, previous=previous, trigger=Trigger.SCHEDULE, **times)


def start(scheduled: datetime = START, end: datetime | None = END) -> Command[MediaEvent]:
    return MediaEvent.start_on_schedule.on(KEY, scheduled, scheduled_end=end)


def end(scheduled: datetime = END) -> Command[MediaEvent]:
    return MediaEvent.end_on_schedule.on(KEY, scheduled)


def details(scenario: Scenario[MediaEvent]) -> EventDetails:
    assert scenario.root is not None
    return scenario.root.details


RESTORED = (fact(events.EventDeleted), fact(events.EventRestored))
STARTED = by_schedule(PRE_LIVE, UNPUBLISHED, actual_live_start=THEN)
ENDED = by_schedule(UNPUBLISHED, STOPPED, actual_live_end=THEN)


class TestStart:
    def test_it_goes_live_without_being_published(self) -> None:
        event = planned().when(start()).then(by_schedule(PRE_LIVE, UNPUBLISHED, actual_live_start=NOW))
        assert (event.details.auto_start_at, event.details.auto_end_at) == (None, END)

    def test_with_auto_publish_it_goes_live_in_public(self) -> None:
        times = {"actual_live_start": NOW, "published_start": NOW}
        planned(auto_publish=True).when(start()).then(by_schedule(PRE_LIVE, PUBLISHED, **times))

    def test_without_an_end_it_starts_too(self) -> None:
        planned(end=None).when(start(end=None)).then(by_schedule(PRE_LIVE, UNPUBLISHED, actual_live_start=NOW))

    def test_the_time_counts_and_not_its_offset(self) -> None:
        east = timezone(timedelta(hours=9))
        planned().when(start(START.astimezone(east), END.astimezone(east))).then(
            by_schedule(PRE_LIVE, UNPUBLISHED, actual_live_start=NOW)
        )

    @pytest.mark.parametrize(
        ("name", "event"),
        [
            ("never without the flag", planned(auto_start=False)),
            ("auto_publish alone starts nothing", planned(auto_start=False, auto_publish=True)),
            ("without a scheduled start", planned(start=None)),
            ("it would end before it starts", planned(end=START - timedelta(minutes=1))),
            ("it would end when it starts", planned(end=START)),
            ("it is deleted", planned(fact(events.EventDeleted))),
            ("it has started", planned(STARTED)),
            ("it has started and is PRE_LIVE again", planned(STARTED, moved(UNPUBLISHED, PRE_LIVE))),
            *((f"it is {state.name}", planned(moved(PRE_LIVE, state))) for state in EventState if state is not PRE_LIVE),
        ],
    )
    def test_it_is_not_started(self, name: str, event: Scenario[MediaEvent]) -> None:
        assert details(event).auto_start_at is None, name
        event.when(start(end=details(event).scheduled_end)).then_nothing()

    @pytest.mark.parametrize(
        ("name", "since"),
        [
            ("it was moved", fact(events.Rescheduled, scheduled_start=START + timedelta(minutes=30))),
            ("its end was moved", fact(events.Rescheduled, scheduled_end=END + LATER)),
            ("its end was taken away", fact(events.Rescheduled, scheduled_end=None)),
        ],
    )
    def test_what_has_changed_meanwhile_is_looked_at_again(self, name: str, since: Fact) -> None:
        changed = planned(since)
        changed.when(start()).then_nothing()
        seen = details(changed)
        assert seen.auto_start_at is not None, name
        changed.when(start(seen.auto_start_at, seen.scheduled_end)).then(by_schedule(PRE_LIVE, UNPUBLISHED, actual_live_start=NOW))

    def test_a_repeated_command_does_nothing(self) -> None:
        planned(STARTED).when(start()).then_nothing()

    def test_a_new_scheduled_start_starts_an_event_that_is_pre_live_again(self) -> None:
        since = (STARTED, ENDED, fact(events.Rescheduled, scheduled_start=START + LATER, scheduled_end=END + LATER))
        planned(*since).when(start(START + LATER, END + LATER)).then_nothing()
        ready = planned(*since, moved(STOPPED, PRE_LIVE))
        ready.when(start(START + LATER, END + LATER)).then(by_schedule(PRE_LIVE, UNPUBLISHED))

    def test_a_rehearsal_before_the_scheduled_start_takes_nothing_from_it(self) -> None:
        rehearsed = planned(moved(PRE_LIVE, UNPUBLISHED, actual_live_start=THEN), moved(UNPUBLISHED, PRE_LIVE))
        rehearsed.when(start()).then(by_schedule(PRE_LIVE, UNPUBLISHED))

    def test_an_event_that_was_restored_before_its_start_starts(self) -> None:
        restored = planned(*RESTORED)
        restored.when(start()).then(by_schedule(PRE_LIVE, UNPUBLISHED, actual_live_start=NOW))

    @pytest.mark.parametrize("passed", [THEN, THEN - LATER], ids=["at its start", "later"])
    def test_an_event_restored_after_its_start_waits_for_a_new_start(self, passed: datetime) -> None:
        restored = planned(*RESTORED, start=passed)
        assert details(restored).auto_start_at is None
        restored.when(start(passed)).then_nothing()
        moved_start = planned(*RESTORED, fact(events.Rescheduled, scheduled_start=START), start=passed)
        moved_start.when(start()).then(by_schedule(PRE_LIVE, UNPUBLISHED, actual_live_start=NOW))

    def test_an_event_that_was_deleted_while_it_was_live_stays_as_it_is(self) -> None:
        """The Event is shown as before, and takes no channel."""
        restored = planned(moved(PRE_LIVE, PUBLISHED), *RESTORED, start=THEN)
        assert (details(restored).state, details(restored).auto_start_at, details(restored).auto_end_at) == (PUBLISHED, None, END)
        restored.when(start(THEN)).then_nothing()
        put_back = planned(moved(PRE_LIVE, PUBLISHED), *RESTORED, moved(PUBLISHED, PRE_LIVE), start=THEN)
        put_back.when(start(THEN)).then_nothing()


class TestEnd:
    @pytest.mark.parametrize("state", sorted(STREAMING))
    def test_it_is_stopped(self, state: EventState) -> None:
        event = planned(moved(PRE_LIVE, state)).when(end()).then(by_schedule(state, STOPPED, actual_live_end=NOW))
        assert event.details.auto_end_at is None

    def test_what_was_published_is_not_any_more(self) -> None:
        live = planned(by_schedule(PRE_LIVE, PUBLISHED, actual_live_start=THEN, published_start=THEN))
        live.when(end()).then(by_schedule(PUBLISHED, STOPPED, actual_live_end=NOW, published_end=NOW))

    @pytest.mark.parametrize(
        ("name", "event"),
        [
            ("never without the flag", planned(STARTED, auto_end=False)),
            ("without a scheduled end", planned(STARTED, end=None)),
            ("it is deleted", planned(STARTED, fact(events.EventDeleted))),
            ("it was forced to stop", planned(STARTED, fact(events.ForceStopped, previous=UNPUBLISHED))),
            *(
                (f"it is {state.name}", planned(moved(PRE_LIVE, state)))
                for state in EventState
                if state not in STREAMING | {PRE_LIVE}
            ),
            ("it has not started", planned()),
        ],
    )
    def test_it_is_not_stopped(self, name: str, event: Scenario[MediaEvent]) -> None:
        assert details(event).auto_end_at is None, name
        event.when(end()).then_nothing()

    def test_an_end_that_has_moved_meanwhile_counts(self) -> None:
        moved_end = planned(STARTED, fact(events.Rescheduled, scheduled_end=END + LATER))
        moved_end.when(end()).then_nothing()
        moved_end.when(end(END + LATER)).then(by_schedule(UNPUBLISHED, STOPPED, actual_live_end=NOW))

    def test_it_stops_once_for_each_scheduled_end(self) -> None:
        again = planned(STARTED, ENDED, moved(STOPPED, UNPUBLISHED))
        again.when(end()).then_nothing()
        assert details(again).auto_end_at is None
        extended = planned(STARTED, ENDED, moved(STOPPED, UNPUBLISHED), fact(events.Rescheduled, scheduled_end=END + LATER))
        extended.when(end(END + LATER)).then(by_schedule(UNPUBLISHED, STOPPED, actual_live_end=NOW))

    @pytest.mark.parametrize("state", sorted(STREAMING))
    def test_who_goes_live_after_the_scheduled_end_stays_live(self, state: EventState) -> None:
        late = planned(end=NOW - timedelta(minutes=1)).when(MediaEvent.change_state.on(KEY, state, trigger=Trigger.OPERATOR))
        assert late.after is not None
        assert late.after.details.auto_end_at is None

    def test_who_publishes_after_the_scheduled_end_does_not_keep_it_live(self) -> None:
        published = planned(STARTED, end=THEN).when(MediaEvent.change_state.on(KEY, PUBLISHED, trigger=Trigger.OPERATOR))
        assert published.after is not None
        assert published.after.details.auto_end_at == THEN

    def test_a_live_state_that_comes_as_data_does_not_keep_it_live(self) -> None:
        stated = planned(end=THEN).when(AddOrUpdateEvent(KEY, {}, state=UNPUBLISHED))
        assert stated.after is not None
        assert stated.after.details.auto_end_at == THEN


@pytest.mark.parametrize("state", sorted(LIVE))
def test_what_the_schedule_did_is_kept_in_a_snapshot(state: EventState) -> None:
    root = planned(by_schedule(PRE_LIVE, state), by_schedule(state, STOPPED), moved(STOPPED, PRE_LIVE)).root
    assert root is not None
    again = MediaEvent.from_snapshot(stream=root.id, version=root.version, state=root.snapshot())
    assert (again.details.started_for, again.details.ended_for) == (START, END)
    assert again.details == root.details

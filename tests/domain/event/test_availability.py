"""publishedStart and publishedEnd: when the schedule makes an Event public and private, and when it does not."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import (
    PRIVATE_STATES,
    PUBLIC_STATES,
    EventState,
    Mp4State,
    Quality,
    QualityVerdict,
    Trigger,
    VodJob,
    VodJobEnd,
    VodWorkflow,
)
from domain.kernel.command import Command
from tests.domain.event.events_given import KEY, an_event, moved
from tests.domain.scenario import NOW, THEN, Fact, Scenario, fact

PRIVATE, PUBLIC = EventState.VOD_PRIVATE, EventState.VOD_PUBLIC
PRE_LIVE, UNPUBLISHED, STOPPED = EventState.PRE_LIVE, EventState.LIVE_UNPUBLISHED, EventState.STOPPED
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
START, END = NOW - MINUTE, NOW + DAY
"""A window that is open when the command comes, and was not when the given events happened."""


def window(start: datetime | None = START, end: datetime | None = END) -> Fact:
    return fact(events.PublicationWindowChanged, published_start=start, published_end=end)


def film(state: EventState, *since: Fact, start: datetime | None = START, end: datetime | None = END) -> Scenario[MediaEvent]:
    return an_event(window(start, end), moved(PRE_LIVE, state), *since)


def publish(start: datetime = START, end: datetime | None = END) -> Command[MediaEvent]:
    return MediaEvent.publish_on_schedule.on(KEY, start, available_until=end)


def withdraw(end: datetime = END) -> Command[MediaEvent]:
    return MediaEvent.withdraw_on_schedule.on(KEY, end)


def changed(previous: EventState, state: EventState, *, trigger: Trigger = Trigger.SCHEDULE, **times: datetime) -> Fact:
    return fact(events.StateChanged, state=state, previous=previous, trigger=trigger, **times)


def times(scenario: Scenario[MediaEvent]) -> tuple[datetime | None, datetime | None]:
    assert scenario.root is not None
    return scenario.root.details.auto_publish_at, scenario.root.details.auto_withdraw_at


RESTORED = (fact(events.EventDeleted), fact(events.EventRestored))


class TestStart:
    @pytest.mark.parametrize(("private", "public"), PUBLIC_STATES.items())
    def test_a_private_event_becomes_public(self, private: EventState, public: EventState) -> None:
        live: dict[str, Any] = {"actual_live_start": NOW} if private is UNPUBLISHED else {}
        event = film(private)
        assert times(event) == (START, None)
        event.when(publish()).then(changed(private, public, **live))

    @pytest.mark.parametrize(
        ("name", "event"),
        [
            ("nobody wrote a start", film(PRIVATE, start=None)),
            ("a state change recorded the start", an_event(moved(PRE_LIVE, PUBLIC, published_start=START), moved(PUBLIC, PRIVATE))),
            ("it would be over before it begins", film(PRIVATE, end=START)),
            ("it is deleted", film(PRIVATE, fact(events.EventDeleted))),
            (
                "the start was over when it was restored",
                film(PRIVATE, *map(fact, (events.EventDeleted, events.EventRestored)), start=THEN),
            ),
            ("a client made it private after its start", film(PUBLIC, moved(PUBLIC, PRIVATE), start=THEN)),
            (
                "the schedule has published it for this start",
                film(PRIVATE, changed(PRIVATE, PUBLIC), moved(PUBLIC, PRIVATE), start=THEN),
            ),
            *((f"it is {state.name}", film(state)) for state in EventState if state not in PUBLIC_STATES),
        ],
    )
    def test_it_is_not_published(self, name: str, event: Scenario[MediaEvent]) -> None:
        assert times(event)[0] is None, name
        event.when(publish()).then_nothing()

    def test_an_early_publication_that_was_taken_back_takes_nothing_from_the_start(self) -> None:
        film(PUBLIC, moved(PUBLIC, PRIVATE)).when(publish()).then(changed(PRIVATE, PUBLIC))

    def test_another_start_publishes_once_more(self) -> None:
        again = film(PUBLIC, moved(PUBLIC, PRIVATE), window(START, END), start=THEN)
        again.when(publish()).then(changed(PRIVATE, PUBLIC))

    @pytest.mark.parametrize("since", [window(START + MINUTE), window(START, END + DAY), window(START, None), window(None)])
    def test_a_window_that_has_changed_meanwhile_is_looked_at_again(self, since: Fact) -> None:
        film(PRIVATE, since).when(publish()).then_nothing()

    def test_a_film_that_must_not_be_public_stays_private(self) -> None:
        failed = Quality(job=1, profile="broadcast", verdict=QualityVerdict.FAIL, keep_private=True)
        event = film(PRIVATE, fact(events.QualityMeasured, quality=failed))
        assert times(event)[0] is None
        event.when(publish()).then_nothing()


class TestEnd:
    @pytest.mark.parametrize(("public", "private"), PRIVATE_STATES.items())
    def test_a_public_event_becomes_private(self, public: EventState, private: EventState) -> None:
        live: dict[str, Any] = {"actual_live_start": NOW} if private is UNPUBLISHED else {}
        event = film(public, end=THEN + MINUTE)
        assert times(event) == (None, THEN + MINUTE)
        event.when(withdraw(THEN + MINUTE)).then(changed(public, private, **live))

    @pytest.mark.parametrize(
        ("name", "event"),
        [
            ("nobody wrote an end", film(PUBLIC, end=None)),
            ("a stop recorded the end", an_event(moved(PRE_LIVE, STOPPED, published_end=END), moved(STOPPED, PUBLIC))),
            ("it is deleted", film(PUBLIC, fact(events.EventDeleted))),
            ("a client published it after its end", film(PUBLIC, start=None, end=THEN)),
            *((f"it is {state.name}", film(state)) for state in EventState if state not in PRIVATE_STATES),
        ],
    )
    def test_it_is_not_withdrawn(self, name: str, event: Scenario[MediaEvent]) -> None:
        assert times(event)[1] is None, name
        event.when(withdraw()).then_nothing()
        event.when(withdraw(THEN)).then_nothing()

    def test_an_end_in_the_past_withdraws_at_once(self) -> None:
        event = film(PUBLIC, window(None, THEN - DAY), end=None)
        event.when(withdraw(THEN - DAY)).then(changed(PUBLIC, PRIVATE))

    def test_an_end_that_passed_while_it_was_deleted_withdraws_it_when_it_is_restored(self) -> None:
        event = film(PUBLIC, *RESTORED, end=THEN + MINUTE)
        event.when(withdraw(THEN + MINUTE)).then(changed(PUBLIC, PRIVATE))


JOB = VodJob(number=7, version=1, workflow=VodWorkflow.INGEST)


@pytest.mark.parametrize(
    ("start", "end", "state"),
    [(START, END, PUBLIC), (NOW, END, PUBLIC), (NOW + MINUTE, END, PRIVATE), (THEN, NOW, PRIVATE), (None, None, PUBLIC)],
)
def test_a_film_is_public_from_its_job_on_only_while_the_window_is_open(
    start: datetime | None, end: datetime | None, state: EventState
) -> None:
    job = JOB.again(version=1, publish=True)
    ingesting = an_event(
        window(start, end),
        fact(events.VodJobStarted, vod_job=job),
        fact(events.Mp4StateChanged, mp4_state=Mp4State.GENERATING, previous=Mp4State.NONE),
        moved(PRE_LIVE, EventState.VOD_INGESTING),
    )
    after = ingesting.when(MediaEvent.end_vod_job.on(KEY, 7, VodJobEnd.COMPLETED, version=2)).after
    assert after is not None
    assert after.details.state is state


@pytest.mark.parametrize(("start", "state"), [(START, EventState.LIVE_PUBLISHED), (NOW + MINUTE, UNPUBLISHED)])
def test_a_scheduled_start_is_public_only_while_the_window_is_open(start: datetime, state: EventState) -> None:
    automation: dict[str, Any] = {"auto_start": True, "auto_publish": True}
    event = an_event(window(start), fact(events.Rescheduled, scheduled_start=START), fact(events.AutomationChanged, **automation))
    after = event.when(MediaEvent.start_on_schedule.on(KEY, START, scheduled_end=None)).after
    assert after is not None
    assert after.details.state is state


def test_a_stop_leaves_an_end_that_a_client_wrote() -> None:
    live = film(EventState.LIVE_PUBLISHED, start=THEN)
    live.when(MediaEvent.change_state.on(KEY, STOPPED, trigger=Trigger.OPERATOR)).then(
        moved(EventState.LIVE_PUBLISHED, STOPPED, actual_live_end=NOW)
    )


def test_another_publication_may_begin_after_an_end_that_a_stop_recorded() -> None:
    stopped = an_event(moved(PRE_LIVE, STOPPED, published_start=THEN, published_end=THEN))
    write = AddOrUpdateEvent(KEY, {"published_start": NOW})
    stopped.when(write).then(window(NOW, None))


def test_what_the_schedule_did_is_kept_in_a_snapshot() -> None:
    root = film(PRIVATE, changed(PRIVATE, PUBLIC), changed(PUBLIC, PRIVATE), start=THEN, end=THEN).root
    assert root is not None
    again = MediaEvent.from_snapshot(stream=root.id, version=root.version, state=root.snapshot())
    assert (again.details.available_from, again.details.published_for) == (THEN, THEN)
    assert (again.details.available_until, again.details.withdrawn_for) == (THEN, THEN)
    assert again.details == root.details

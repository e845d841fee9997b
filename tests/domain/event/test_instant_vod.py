"""INSTANT_VOD: when the recorded stream of an Event is shown and hidden, and what a capture does to it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.values import EventState, Mp4State, Trigger, VodJob, VodJobEnd, VodWorkflow
from domain.kernel.command import Command
from tests.domain.event.events_given import KEY, an_event, moved
from tests.domain.scenario import NOW, THEN, Fact, Scenario, fact

PRE_LIVE, LIVE, STOPPED = EventState.PRE_LIVE, EventState.LIVE_PUBLISHED, EventState.STOPPED
SHOWN, BACKUP, GONE = EventState.INSTANT_VOD, EventState.INSTANT_VOD_BACKUP, EventState.INSTANT_VOD_DELETE
MINUTE = timedelta(minutes=1)
START, END = NOW - MINUTE, NOW + timedelta(days=1)
BEGAN = THEN - 90 * MINUTE
"""The Event was live from then to `THEN`."""
JOB = VodJob(number=7, workflow=VodWorkflow.CAPTURE)
CAPTURING = fact(events.VodJobStarted, vod_job=JOB)


def stopped(*since: Fact, start: datetime | None = START, end: datetime | None = END) -> Scenario[MediaEvent]:
    return an_event(
        fact(events.InstantVodWindowChanged, instant_vod_start=start, instant_vod_end=end),
        moved(PRE_LIVE, LIVE, actual_live_start=BEGAN, published_start=BEGAN),
        moved(LIVE, STOPPED, actual_live_end=THEN),
        *since,
    )


def show(start: datetime = START, end: datetime | None = END) -> Command[MediaEvent]:
    return MediaEvent.show_recording_on_schedule.on(KEY, start, instant_vod_end=end)


def hide(end: datetime = END) -> Command[MediaEvent]:
    return MediaEvent.hide_recording_on_schedule.on(KEY, end)


def scheduled(previous: EventState, state: EventState, *, trigger: Trigger = Trigger.SCHEDULE) -> Fact:
    return fact(events.StateChanged, state=state, previous=previous, trigger=trigger)


def after(scenario: Scenario[MediaEvent], command: Command[MediaEvent]) -> MediaEvent:
    root = scenario.when(command).after
    assert root is not None
    return root


SHOWING = scheduled(STOPPED, SHOWN)


def test_a_stopped_event_shows_its_recording() -> None:
    root = stopped().when(show()).then(SHOWING)
    assert (root.details.recorded_part, root.details.auto_instant_vod_end_at) == ((BEGAN, THEN), END)


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("no start", stopped(start=None)),
        ("it would end before it begins", stopped(end=START)),
        ("it was shown for this start", stopped(SHOWING, moved(SHOWN, STOPPED), start=THEN)),
        ("it is deleted", stopped(fact(events.EventDeleted))),
        ("it was never live", an_event(fact(events.InstantVodWindowChanged, instant_vod_start=START), moved(PRE_LIVE, STOPPED))),
        *((f"it is {state.name}", stopped(moved(STOPPED, state))) for state in EventState if state is not STOPPED),
    ],
)
def test_it_is_not_shown(name: str, event: Scenario[MediaEvent]) -> None:
    assert event.root is not None
    assert event.root.details.auto_instant_vod_at is None, name
    event.when(show()).then_nothing()


@pytest.mark.parametrize("since", [fact(events.InstantVodWindowChanged, instant_vod_end=END + MINUTE)])
def test_a_time_that_has_changed_meanwhile_is_looked_at_again(since: Fact) -> None:
    stopped(since).when(show()).then_nothing()
    stopped(SHOWING, since).when(hide()).then_nothing()


def test_a_flow_shows_the_recording_of_an_event_without_a_time_of_its_own() -> None:
    command = MediaEvent.show_recording.on(KEY)
    stopped(start=None).when(command).then(scheduled(STOPPED, SHOWN, trigger=Trigger.FLOW))
    stopped().when(command).then_nothing()
    an_event(moved(PRE_LIVE, STOPPED)).when(command).then_nothing()


@pytest.mark.parametrize(("since", "state"), [((), GONE), ((CAPTURING,), BACKUP)])
def test_the_recording_is_hidden_at_the_end(since: tuple[Fact, ...], state: EventState) -> None:
    stopped(SHOWING, *since, end=THEN + MINUTE).when(hide(THEN + MINUTE)).then(scheduled(SHOWN, state))


def test_a_client_shows_it_again_after_the_end() -> None:
    again = stopped(SHOWING, scheduled(SHOWN, GONE), moved(GONE, SHOWN), end=THEN)
    assert again.root is not None
    assert again.root.details.auto_instant_vod_end_at is None


def test_a_published_event_shows_nothing_from_before_its_publication() -> None:
    rehearsed = an_event(
        moved(PRE_LIVE, EventState.LIVE_UNPUBLISHED, actual_live_start=BEGAN),
        moved(EventState.LIVE_UNPUBLISHED, LIVE, published_start=BEGAN + 20 * MINUTE),
        moved(LIVE, STOPPED, actual_live_end=THEN),
    ).root
    assert rehearsed is not None
    assert rehearsed.details.recorded_part == (BEGAN + 20 * MINUTE, THEN)


class TestCapture:
    @pytest.mark.parametrize("since", [(), (SHOWING,)], ids=["about to be shown", "shown"])
    def test_a_capture_leaves_the_recording_shown(self, since: tuple[Fact, ...]) -> None:
        root = after(stopped(*since), MediaEvent.start_vod_job.on(KEY, 7, VodWorkflow.CAPTURE))
        assert root.details.state is (SHOWN if since else STOPPED)

    def test_without_instant_vod_it_is_ingesting(self) -> None:
        root = after(stopped(start=None), MediaEvent.start_vod_job.on(KEY, 7, VodWorkflow.CAPTURE))
        assert root.details.state is EventState.VOD_INGESTING

    @pytest.mark.parametrize("state", [SHOWN, BACKUP])
    @pytest.mark.parametrize(("publish", "made"), [(True, EventState.VOD_PUBLIC), (False, EventState.VOD_PRIVATE)])
    def test_the_film_takes_its_place(self, state: EventState, publish: bool, made: EventState) -> None:
        job = JOB.again(publish=publish)
        running = stopped(SHOWING, *self._running(job), *([scheduled(SHOWN, BACKUP)] if state is BACKUP else []))
        assert after(running, MediaEvent.end_vod_job.on(KEY, 7, VodJobEnd.COMPLETED, version=2)).details.state is made

    @pytest.mark.parametrize(("state", "result"), [(SHOWN, SHOWN), (BACKUP, EventState.VOD_ERROR)])
    def test_a_recording_that_is_shown_survives_a_failure(self, state: EventState, result: EventState) -> None:
        running = stopped(SHOWING, *self._running(JOB), *([scheduled(SHOWN, BACKUP)] if state is BACKUP else []))
        assert after(running, MediaEvent.end_vod_job.on(KEY, 7, VodJobEnd.FAILED, version=2)).details.state is result

    def _running(self, job: VodJob) -> tuple[Fact, ...]:
        generating = fact(events.Mp4StateChanged, mp4_state=Mp4State.GENERATING, previous=Mp4State.NONE)
        return fact(events.VodJobStarted, vod_job=job), generating


def test_what_the_schedule_did_is_kept_in_a_snapshot() -> None:
    root = stopped(SHOWING, scheduled(SHOWN, GONE), start=THEN, end=THEN).root
    assert root is not None
    again = MediaEvent.from_snapshot(stream=root.id, version=root.version, state=root.snapshot())
    assert (again.details.instant_vod_for, again.details.instant_vod_ended_for) == (THEN, THEN)

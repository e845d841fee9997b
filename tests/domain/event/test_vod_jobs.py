"""The job that makes the files of an Event for playback on demand: what the Event shows of its start and of its end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.values import (
    BEFORE_VOD,
    WITH_METADATA,
    EventState,
    Mp4State,
    Trigger,
    VodFile,
    VodJob,
    VodJobEnd,
    VodResult,
    VodWorkflow,
)
from domain.kernel.command import Command
from domain.kernel.errors import Conflict, Malformed, NotFound
from tests.domain.event.events_given import KEY, an_event, in_state, nothing
from tests.domain.scenario import NOW, THEN, Fact, Scenario, fact

CAPTURE, INGEST, PACKAGE = VodWorkflow.CAPTURE, VodWorkflow.INGEST, VodWorkflow.PACKAGE
COMPLETED, FAILED, BROKEN = VodJobEnd.COMPLETED, VodJobEnd.FAILED, VodJobEnd.BROKEN
STOPPED, INGESTING, VOD_ERROR = EventState.STOPPED, EventState.VOD_INGESTING, EventState.VOD_ERROR
PRIVATE, PUBLIC = EventState.VOD_PRIVATE, EventState.VOD_PUBLIC
RANGE = {"capture_vod_start": THEN - timedelta(hours=2), "capture_vod_end": THEN - timedelta(hours=1)}
CAPTURING = fact(events.CapturingChanged, capturing_live2_vod=True, **RANGE)
CAPTURED = fact(events.CapturingChanged, capturing_live2_vod=False)


FILE = VodFile(duration=1.5, size=3, modified=THEN)
FOUND = fact(events.VodFileChanged, vod_file=FILE)


def start(job: int = 7, workflow: VodWorkflow = CAPTURE, **more: Any) -> Command[MediaEvent]:
    return MediaEvent.start_vod_job.on(KEY, job, workflow, captured=RANGE if workflow is CAPTURE else {}, **more)


def end(how: VodJobEnd, job: int = 7, *, version: int = 9, **more: Any) -> Command[MediaEvent]:
    return MediaEvent.end_vod_job.on(KEY, job, how, version=version, **more)


def begun(job: int = 7, workflow: VodWorkflow = CAPTURE, **more: Any) -> Fact:
    return fact(events.VodJobStarted, vod_job=VodJob(number=job, workflow=workflow, **more))


def over(how: VodJobEnd, job: int = 7, workflow: VodWorkflow = CAPTURE, **more: Any) -> Fact:
    values = {"ended_at": NOW, "version": 9, **more}
    return fact(events.VodJobEnded, vod_job=VodJob(number=job, workflow=workflow, ended=how, **values))


def mp4(previous: Mp4State, state: Mp4State) -> Fact:
    return fact(events.Mp4StateChanged, mp4_state=state, previous=previous)


def went(previous: EventState, state: EventState) -> Fact:
    return fact(events.StateChanged, state=state, previous=previous, trigger=Trigger.JOB)


NONE, AVAILABLE, GENERATING, GONE = Mp4State.NONE, Mp4State.AVAILABLE, Mp4State.GENERATING, Mp4State.FAILED


def capturing(*since: Fact, state: EventState = STOPPED, **more: Any) -> Scenario[MediaEvent]:
    """An Event that job 7 captures."""
    moves = (went(state, INGESTING),) if state in BEFORE_VOD else ()
    return in_state(state, begun(**more), CAPTURING, mp4(NONE, GENERATING), *moves, *since)


class TestStart:
    @pytest.mark.parametrize("state", sorted(BEFORE_VOD))
    def test_a_capture_shows_that_it_captures_and_what(self, state: EventState) -> None:
        event = in_state(state).when(start()).then(begun(), CAPTURING, mp4(NONE, GENERATING), went(state, INGESTING))
        assert (event.details.capturing_live2_vod, event.details.capture_vod_start) == (True, RANGE["capture_vod_start"])

    @pytest.mark.parametrize("state", sorted(set(EventState) - BEFORE_VOD))
    def test_any_other_state_stays(self, state: EventState) -> None:
        in_state(state).when(start()).then(begun(), CAPTURING, mp4(NONE, GENERATING))

    def test_an_ingest_captures_nothing(self) -> None:
        ingesting = in_state(EventState.PRE_VOD).when(start(workflow=INGEST))
        ingesting.then(begun(workflow=INGEST), mp4(NONE, GENERATING), went(EventState.PRE_VOD, INGESTING))

    @pytest.mark.parametrize("publish", [True, False])
    def test_a_film_that_is_published_makes_an_event_that_was_never_live_one_on_demand(self, publish: bool) -> None:
        given = in_state(EventState.PRE_LIVE).when(start(workflow=INGEST, publish=publish))
        given.then(begun(workflow=INGEST, publish=publish), mp4(NONE, GENERATING), went(EventState.PRE_LIVE, INGESTING))

    @pytest.mark.parametrize("command", [start(workflow=INGEST), start(publish=True), start(workflow=PACKAGE, publish=True)])
    def test_without_publish_and_after_a_capture_it_stays_one_that_will_be_live(self, command: Command[MediaEvent]) -> None:
        after = in_state(EventState.PRE_LIVE).when(command).after
        assert after is not None
        assert after.details.state is EventState.PRE_LIVE

    def test_packaging_leaves_the_mp4_as_it_is(self) -> None:
        packaging = in_state(PRIVATE, mp4(NONE, AVAILABLE)).when(start(workflow=PACKAGE, publish=True))
        packaging.then(begun(workflow=PACKAGE, publish=True))

    @pytest.mark.parametrize("workflow", VodWorkflow)
    def test_a_second_job_is_refused_while_one_is_under_way(self, workflow: VodWorkflow) -> None:
        refusal = capturing().when(start(8, workflow)).then_refused(Conflict)
        assert refusal.reason == "job 7 (vod_capture) is still producing files for this Event"

    def test_a_repeat_changes_nothing(self) -> None:
        capturing().when(start()).then_nothing()

    @pytest.mark.parametrize("how", VodJobEnd)
    def test_after_its_end_another_may_follow(self, how: VodJobEnd) -> None:
        ended = in_state(PRIVATE, begun(), CAPTURING, over(how), CAPTURED, mp4(NONE, AVAILABLE))
        again = fact(events.CapturingChanged, capturing_live2_vod=True)
        ended.when(start(8)).then(begun(8), again, mp4(AVAILABLE, GENERATING))

    def test_a_rerun_takes_the_place_of_the_job_that_it_repeats(self) -> None:
        assert capturing().when(start(8, rerun_of=7)).then(begun(8)).details.vod_job == VodJob(number=8, workflow=CAPTURE)

    def test_a_rerun_of_another_job_than_the_present_one_is_refused(self) -> None:
        capturing().when(start(9, rerun_of=3)).then_refused(Conflict)

    def test_there_must_be_an_event(self) -> None:
        nothing().when(start()).then_refused(NotFound)
        an_event(fact(events.EventDeleted)).when(start()).then_refused(NotFound)


class TestEnd:
    @pytest.mark.parametrize(("auto_publish", "publish"), [(False, None), (True, False), (False, False)])
    def test_a_completed_job_leaves_private_video_on_demand(self, auto_publish: bool, publish: bool | None) -> None:
        automation = fact(events.AutomationChanged, auto_publish=auto_publish)
        asked: dict[str, Any] = {} if publish is None else {"publish": publish}
        event = capturing(automation, **asked).when(end(COMPLETED))
        event.then(over(COMPLETED, publish=publish), CAPTURED, mp4(GENERATING, AVAILABLE), went(INGESTING, PRIVATE))

    @pytest.mark.parametrize(("auto_publish", "publish"), [(True, None), (False, True), (True, True)])
    def test_or_public_one(self, auto_publish: bool, publish: bool | None) -> None:
        automation = fact(events.AutomationChanged, auto_publish=auto_publish)
        asked: dict[str, Any] = {} if publish is None else {"publish": publish}
        event = capturing(automation, **asked).when(end(COMPLETED))
        event.then(over(COMPLETED, publish=publish), CAPTURED, mp4(GENERATING, AVAILABLE), went(INGESTING, PUBLIC))

    @pytest.mark.parametrize("how", [FAILED, BROKEN])
    def test_a_job_that_did_not_complete_leaves_an_error(self, how: VodJobEnd) -> None:
        event = capturing().when(end(how, reason="no source"))
        ended = event.then(over(how, reason="no source"), CAPTURED, mp4(GENERATING, GONE), went(INGESTING, VOD_ERROR))
        assert ended.details.vod_job is not None
        assert ended.details.vod_job.reason == "no source"

    @pytest.mark.parametrize("how", VodJobEnd)
    def test_a_state_that_the_job_did_not_change_stays(self, how: VodJobEnd) -> None:
        live = capturing(state=EventState.LIVE_PUBLISHED)
        live.when(end(how)).then(over(how), CAPTURED, mp4(GENERATING, AVAILABLE if how is COMPLETED else GONE))

    def test_an_event_that_was_stopped_while_its_capture_waited_becomes_video_on_demand(self) -> None:
        stopped = capturing(went(EventState.LIVE_PUBLISHED, STOPPED), state=EventState.LIVE_PUBLISHED)
        stopped.when(end(COMPLETED)).then(over(COMPLETED), CAPTURED, mp4(GENERATING, AVAILABLE), went(STOPPED, PRIVATE))

    def test_packaging_that_fails_leaves_the_mp4(self) -> None:
        packaging = in_state(PUBLIC, mp4(NONE, AVAILABLE), begun(workflow=PACKAGE))
        packaging.when(end(FAILED)).then(over(FAILED, workflow=PACKAGE))

    def test_packaging_that_completes_found_an_mp4(self) -> None:
        packaging = in_state(PRIVATE, begun(workflow=PACKAGE))
        packaging.when(end(COMPLETED)).then(over(COMPLETED, workflow=PACKAGE), mp4(NONE, AVAILABLE))

    def test_what_the_job_found_out_is_taken_over(self) -> None:
        result = VodResult(duration=12.5, size=99, drm_json='{"drm_data":[]}', thumbnail="poster.jpg")
        event = capturing().when(end(COMPLETED, result=result))
        ended = event.then(
            over(COMPLETED, result=result),
            CAPTURED,
            fact(events.VodFileChanged, vod_file=VodFile(duration=12.5, size=99)),
            fact(events.Described, thumbnail="poster.jpg"),
            fact(events.DrmConfigured, drm_json='{"drm_data":[]}'),
            mp4(GENERATING, AVAILABLE),
            went(INGESTING, PRIVATE),
        )
        assert (ended.details.thumbnail, ended.details.drm_json) == ("poster.jpg", '{"drm_data":[]}')

    def test_a_thumbnail_that_somebody_chose_stays(self) -> None:
        chosen = capturing(fact(events.Described, thumbnail="https://a.test/b.jpg"))
        ended = chosen.when(end(COMPLETED, result=VodResult(thumbnail="poster.jpg"))).after
        assert ended is not None
        assert ended.details.thumbnail == "https://a.test/b.jpg"

    @pytest.mark.parametrize("how", VodJobEnd)
    def test_the_end_of_another_job_changes_nothing(self, how: VodJobEnd) -> None:
        capturing().when(end(how, 6)).then_nothing()
        in_state(STOPPED).when(end(how)).then_nothing()

    @pytest.mark.parametrize("how", VodJobEnd)
    def test_an_outcome_that_comes_again_after_a_later_one_changes_nothing(self, how: VodJobEnd) -> None:
        resumed = capturing(over(BROKEN), CAPTURED, mp4(GENERATING, GONE), went(INGESTING, VOD_ERROR), begun(version=10))
        resumed.when(end(how)).then_nothing()
        resumed.when(MediaEvent.resume_vod_job.on(KEY, 7, version=10)).then_nothing()

    @pytest.mark.parametrize("how", VodJobEnd)
    def test_a_second_end_changes_nothing(self, how: VodJobEnd) -> None:
        """The second end is like cancelling a completed job, whose files exist."""
        after = capturing(over(COMPLETED), CAPTURED, mp4(GENERATING, AVAILABLE), went(INGESTING, PRIVATE))
        after.when(end(how, version=12)).then_nothing()


class TestGoingOn:
    def test_a_job_that_goes_on_shows_it(self) -> None:
        broken = capturing(over(BROKEN, publish=True), CAPTURED, mp4(GENERATING, GONE), went(INGESTING, VOD_ERROR), publish=True)
        again = fact(events.CapturingChanged, capturing_live2_vod=True)
        resumed = broken.when(MediaEvent.resume_vod_job.on(KEY, 7, version=10))
        resumed.then(begun(publish=True, version=10), again, mp4(GONE, GENERATING), went(VOD_ERROR, INGESTING))

    def test_only_the_present_job_after_its_end(self) -> None:
        capturing().when(MediaEvent.resume_vod_job.on(KEY, 7, version=10)).then_nothing()
        capturing().when(MediaEvent.resume_vod_job.on(KEY, 6, version=10)).then_nothing()
        capturing(over(BROKEN)).when(MediaEvent.resume_vod_job.on(KEY, 6, version=10)).then_nothing()
        in_state(STOPPED).when(MediaEvent.resume_vod_job.on(KEY, 7, version=10)).then_nothing()

    def test_a_rerun_moves_the_event_to_the_new_job(self) -> None:
        failed = capturing(over(FAILED), CAPTURED, mp4(GENERATING, GONE), went(INGESTING, VOD_ERROR))
        again = fact(events.CapturingChanged, capturing_live2_vod=True)
        failed.when(MediaEvent.move_vod_job.on(KEY, 7, rerun_of=7)).then_nothing()
        moved = failed.when(MediaEvent.move_vod_job.on(KEY, 8, rerun_of=7))
        moved.then(begun(8), again, mp4(GONE, GENERATING), went(VOD_ERROR, INGESTING))

    def test_a_rerun_of_another_job_changes_nothing(self) -> None:
        capturing().when(MediaEvent.move_vod_job.on(KEY, 8, rerun_of=6)).then_nothing()
        in_state(STOPPED).when(MediaEvent.move_vod_job.on(KEY, 8, rerun_of=7)).then_nothing()


class TestDeletedMeanwhile:
    @pytest.mark.parametrize("how", VodJobEnd)
    def test_a_deleted_event_keeps_the_end_and_shows_nothing(self, how: VodJobEnd) -> None:
        deleted = capturing(fact(events.EventDeleted)).when(end(how)).then(over(how))
        assert deleted.shown_on == THEN

    def test_it_shows_the_end_when_it_is_restored(self) -> None:
        deleted = capturing(fact(events.EventDeleted), over(COMPLETED))
        deleted.when(MediaEvent.restore.on(KEY)).then(
            fact(events.EventRestored), CAPTURED, mp4(GENERATING, AVAILABLE), went(INGESTING, PRIVATE)
        )

    def test_an_end_before_the_deletion_is_not_shown_again(self) -> None:
        before = over(COMPLETED, ended_at=THEN - timedelta(seconds=1))
        settled = capturing(before, CAPTURED, mp4(GENERATING, GONE), fact(events.EventDeleted))
        settled.when(MediaEvent.restore.on(KEY)).then(fact(events.EventRestored))

    def test_a_job_that_goes_on_shows_nothing_either(self) -> None:
        capturing(over(BROKEN), fact(events.EventDeleted)).when(MediaEvent.resume_vod_job.on(KEY, 7, version=10)).then(
            begun(version=10)
        )


class TestMetadata:
    @pytest.mark.parametrize("state", sorted(set(EventState) - WITH_METADATA))
    def test_in_other_states_they_are_not_taken_over(self, state: EventState) -> None:
        refused = in_state(state).when(MediaEvent.sync_vod_metadata.on(KEY, FILE, available=True)).then_refused(Malformed)
        assert [(error.field, error.message) for error in refused.errors] == [
            ("id", f"an Event in the state {state.name} has no metadata")
        ]

    @pytest.mark.parametrize("state", sorted(WITH_METADATA))
    def test_the_file_and_the_state_of_the_mp4_are_taken_over(self, state: EventState) -> None:
        event = in_state(state).when(MediaEvent.sync_vod_metadata.on(KEY, FILE, available=True)).then(FOUND, mp4(NONE, AVAILABLE))
        assert event.details.vod_file == FILE

    def test_a_file_that_is_known_changes_nothing(self) -> None:
        scenario = in_state(PUBLIC, FOUND, mp4(NONE, AVAILABLE))
        scenario.when(MediaEvent.sync_vod_metadata.on(KEY, FILE, available=True)).then_nothing()

    def test_an_mp4_that_is_gone(self) -> None:
        scenario = in_state(PUBLIC, FOUND, mp4(NONE, AVAILABLE))
        scenario.when(MediaEvent.sync_vod_metadata.on(KEY, FILE, available=False)).then(mp4(AVAILABLE, NONE))

    def test_while_a_job_makes_the_mp4_its_state_stays(self) -> None:
        capturing(state=EventState.VOD_PUBLIC).when(MediaEvent.sync_vod_metadata.on(KEY, FILE, available=False)).then(FOUND)

    def test_after_a_job_that_failed_the_state_is_what_was_found(self) -> None:
        failed = capturing(over(FAILED), CAPTURED, mp4(GENERATING, GONE), state=EventState.VOD_PUBLIC)
        failed.when(MediaEvent.sync_vod_metadata.on(KEY, FILE, available=True)).then(FOUND, mp4(GONE, AVAILABLE))

    def test_what_a_get_does_not_show_moves_neither_etag_nor_date(self) -> None:
        packaging = in_state(PRIVATE, mp4(NONE, AVAILABLE)).when(start(workflow=PACKAGE)).after
        assert packaging is not None
        assert (packaging.version, packaging.shown_version, packaging.shown_on) == (4, 3, THEN)
        result = (
            in_state(PRIVATE, mp4(NONE, AVAILABLE)).when(MediaEvent.sync_vod_metadata.on(KEY, FILE, available=True)).then(FOUND)
        )
        assert (result.version, result.shown_version) == (4, 3)

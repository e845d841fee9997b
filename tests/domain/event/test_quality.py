"""An Event shows the result of the check of its film, and a film that fails may not become public."""

from __future__ import annotations

from typing import Any

import pytest

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.values import EventState, Mp4State, Quality, QualityVerdict, VodJobEnd, VodWorkflow
from domain.event.vod_jobs import vod_command
from domain.job.outcome import JobOutcome, OutcomeKind
from domain.kernel.errors import NotFound
from tests.domain.event.events_given import KEY, an_event, in_state, nothing
from tests.domain.event.test_vod_jobs import begun, end, mp4, over, went
from tests.domain.scenario import NOW, Fact, arguments_of, fact

INGEST = VodWorkflow.INGEST
INGESTING, PRIVATE, PUBLIC = EventState.VOD_INGESTING, EventState.VOD_PRIVATE, EventState.VOD_PUBLIC
NONE, AVAILABLE, GENERATING = Mp4State.NONE, Mp4State.AVAILABLE, Mp4State.GENERATING


def quality(verdict: str = "fail", *, job: int = 7, keep_private: bool = True, **more: Any) -> Quality:
    return Quality(job=job, profile="ebu-r128", verdict=QualityVerdict(verdict), keep_private=keep_private, **more)


def measured(quality: Quality | None) -> Fact:
    at = None if quality is None else quality.model_copy(update={"measured_at": NOW})
    return fact(events.QualityMeasured, quality=at)


@pytest.mark.parametrize(
    ("result", "state"),
    [
        (quality("fail"), PRIVATE),
        (quality("warn"), PUBLIC),
        (quality("pass"), PUBLIC),
        (quality("fail", keep_private=False), PUBLIC),
    ],
)
def test_a_film_that_fails_stays_private_where_the_profile_says_so(result: Quality, state: EventState) -> None:
    asked: dict[str, Any] = {"workflow": INGEST, "publish": True}
    ingesting = in_state(EventState.PRE_VOD, begun(**asked), mp4(NONE, GENERATING), went(EventState.PRE_VOD, INGESTING))
    done = ingesting.when(end(VodJobEnd.COMPLETED, quality=result))
    done.then(over(VodJobEnd.COMPLETED, **asked), measured(result), mp4(GENERATING, AVAILABLE), went(INGESTING, state))


def test_a_film_that_fails_takes_an_event_from_the_public() -> None:
    failing = quality(job=9)
    public = in_state(PUBLIC).when(MediaEvent.measure_quality.on(KEY, failing))
    assert public.then(measured(failing), went(PUBLIC, PRIVATE)).details.quality is not None


@pytest.mark.parametrize("state", [PRIVATE, EventState.STOPPED, EventState.PRE_LIVE])
def test_a_check_changes_no_other_state(state: EventState) -> None:
    failing = quality(job=9)
    in_state(state).when(MediaEvent.measure_quality.on(KEY, failing)).then(measured(failing))


def test_a_check_that_is_told_again_changes_nothing() -> None:
    failing = quality("pass", job=9)
    in_state(PRIVATE, measured(failing)).when(MediaEvent.measure_quality.on(KEY, failing)).then_nothing()


def test_who_makes_it_public_all_the_same_is_obeyed() -> None:
    """The check is told again when the consumer begins anew."""
    failing = quality(job=9)
    in_state(PUBLIC, measured(failing), went(PUBLIC, PRIVATE), went(PRIVATE, PUBLIC)).when(
        MediaEvent.measure_quality.on(KEY, failing)
    ).then_nothing()


def test_nothing_is_known_of_another_film() -> None:
    history = (measured(quality("pass", job=3)), begun(workflow=INGEST), mp4(NONE, GENERATING))
    ended = in_state(PRIVATE, *history).when(end(VodJobEnd.COMPLETED))
    ended.then(over(VodJobEnd.COMPLETED, workflow=INGEST), measured(None), mp4(GENERATING, AVAILABLE))


def test_a_film_that_fails_is_private_after_a_restore_too() -> None:
    asked: dict[str, Any] = {"workflow": INGEST, "publish": True}
    ingesting = (begun(**asked), mp4(NONE, GENERATING), went(EventState.PRE_VOD, INGESTING), fact(events.EventDeleted))
    failing = quality()
    deleted = in_state(EventState.PRE_VOD, *ingesting).when(end(VodJobEnd.COMPLETED, quality=failing))
    deleted.then(over(VodJobEnd.COMPLETED, **asked), measured(failing))
    after = (
        in_state(EventState.PRE_VOD, *ingesting, over(VodJobEnd.COMPLETED, **asked), measured(failing))
        .when(MediaEvent.restore.on(KEY))
        .after
    )
    assert after is not None
    assert after.details.state is PRIVATE


def test_a_film_that_is_packaged_again_is_the_same() -> None:
    history = (measured(quality("pass", job=3)), begun(workflow=VodWorkflow.PACKAGE))
    after = in_state(PRIVATE, *history).when(end(VodJobEnd.COMPLETED)).after
    assert after is not None
    assert after.details.quality is not None


def test_there_must_be_an_event() -> None:
    nothing().when(MediaEvent.measure_quality.on(KEY, quality())).then_refused(NotFound)
    an_event(fact(events.EventDeleted)).when(MediaEvent.measure_quality.on(KEY, quality())).then_nothing()


def outcome(**metadata: Any) -> JobOutcome:
    return JobOutcome(kind=OutcomeKind.COMPLETED, job=7, version=3, metadata=metadata)


TOLD = {"job": 99, "profile": "a85", "verdict": "warn", "sounds": [{"track": 1, "integrated": -24.0, "channels": 2}]}


def test_the_end_of_a_check_tells_the_event() -> None:
    command = vod_command(str(KEY), outcome(quality_check=TOLD))
    quality = arguments_of(command, MediaEvent.measure_quality)["quality"]
    assert (quality.job, quality.verdict, quality.sounds[0].integrated) == (7, "warn", -24.0)


def test_the_end_of_an_ingest_tells_the_event() -> None:
    command = vod_command(str(KEY), outcome(quality=TOLD, duration=1.0))
    assert arguments_of(command, MediaEvent.end_vod_job)["quality"] is not None


@pytest.mark.parametrize("reported", [None, [], {}, {"profile": "a85"}, {**TOLD, "verdict": "splendid"}])
def test_what_another_package_says_of_quality_is_read_tolerantly(reported: object) -> None:
    command = vod_command(str(KEY), outcome(quality=reported))
    assert arguments_of(command, MediaEvent.end_vod_job)["quality"] is None

"""Jobs for playback on demand over in-memory twins: the Event becomes their owner in the append that accepts them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from domain.channel.playback import channel_configuration
from domain.event.aggregate import MediaEvent
from domain.event.asset_sync import AssetSync
from domain.event.commands import (
    AddOrUpdateEvent,
)
from domain.event.values import EventState, Mp4State, Trigger, VodJobEnd, VodResult, VodWorkflow
from domain.event.vod_jobs import VodJobOwners, assets_follow, live_origins, vod_command
from domain.job.aggregate import Job
from domain.job.callbacks import JobCallbacks
from domain.job.handlers import JobChanges, JobHandlers, NewJob
from domain.job.outcome import JobOutcome, OutcomeKind
from domain.job.ports import CheckedJob
from domain.job.values import JobState, Output, TaskPlan
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.command import Command
from domain.kernel.errors import Conflict, Malformed, NotFound, Refused
from domain.kernel.ports import Invocation
from domain.record.configured_record import SentConfiguration
from domain.record.kinds.channel import Channel
from domain.record.record import RegisterRecord
from tests.domain.memory import Memory
from tests.domain.scenario import NOW, arguments_of

ME = Invocation.by("studio")
EVENT, CHANNEL = UUID("11111111-1111-4111-8111-111111111111"), UUID(int=2)
ORIGINS = ["https://a.test/live.m3u8", "https://b.test/live.m3u8"]
LIVE_AT, STOPPED_AT = NOW - timedelta(hours=2), NOW - timedelta(hours=1)


def outputs(protocol: str, *urls: str | None) -> dict[str, Any]:
    names = ("liveOriginPrimaryUrl", "liveOriginSecondaryUrl")
    given = {name: url for name, url in zip(names, urls, strict=False) if url is not None}
    return {"streamProtocol": protocol, "liveCdnPrimaryUrl": "https://cdn.test/live", **given}


def channel(*encoders: Sequence[dict[str, Any]]) -> str:
    return json.dumps({"encoders": [{"name": "enc", "outputUrls": list(urls)} for urls in encoders]})


class Workflows:
    """The twin of the workflows: all are known, and the parameters are an object."""

    def checked_job(self, name: str, parameters: object) -> CheckedJob:
        assert isinstance(parameters, dict)
        return CheckedJob(name, parameters["content_id"], parameters, (), (TaskPlan(id=1, name="make"),))


class Numbers:
    def __init__(self) -> None:
        self._numbers = count(17)

    async def draw(self) -> int:
        return next(self._numbers)


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def handlers(memory: Memory) -> JobHandlers:
    async def load(stream: str) -> AggregateRoot | None:
        return memory.log.load(stream)

    def clock() -> datetime:
        return memory.now

    return JobHandlers(
        memory.executor,
        load,
        numbers=Numbers(),
        workflows=Workflows(),
        vault=memory.vault,
        callbacks=JobCallbacks(memory.vault, memory.events, memory.records, clock=clock, new_signing_secret=lambda: "whsec_a"),
        owners=VodJobOwners(memory.events, memory.records, clock=clock),
        clock=clock,
    )


async def an_event(memory: Memory, *since: Command[Any], **changes: Any) -> None:
    await memory.given(AddOrUpdateEvent(EVENT, changes, new=True), *since)


async def a_live_event(memory: Memory, *, configuration: str = "", stopped: bool = True) -> None:
    """Add an Event that was live from `LIVE_AT` to `STOPPED_AT`."""
    sent = SentConfiguration(configuration or channel([outputs("HLS", *ORIGINS)]), {}, {})
    await memory.given(RegisterRecord(CHANNEL, Channel, {"name": "main", "configuration_json": sent}))
    memory.now = LIVE_AT
    await an_event(
        memory, MediaEvent.change_state.on(EVENT, EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR), channel_id=CHANNEL
    )
    memory.now = STOPPED_AT
    if stopped:
        await memory.given(MediaEvent.change_state.on(EVENT, EventState.STOPPED, trigger=Trigger.OPERATOR))
    memory.now = NOW


def job(workflow: str = "vod_capture", content_id: object = EVENT, *, run_at: datetime | None = None, **parameters: Any) -> NewJob:
    return NewJob(client="studio", workflow=workflow, parameters={"content_id": str(content_id), **parameters}, run_at=run_at)


def event_of(memory: Memory) -> MediaEvent:
    event = memory.log.load(MediaEvent.stream(EVENT))
    assert isinstance(event, MediaEvent)
    return event


class TestSubmission:
    @pytest.mark.parametrize("workflow", ["vod_ingest", "vod_package"])
    async def test_the_event_starts_the_job_in_the_append_that_accepts_it(
        self, memory: Memory, handlers: JobHandlers, workflow: str
    ) -> None:
        await an_event(memory, MediaEvent.change_state.on(EVENT, EventState.PRE_VOD, trigger=Trigger.OPERATOR))
        accepted = (await handlers.submit_job(job(workflow, file="a.mp4", publish=True), invocation=ME)).aggregate
        assert accepted.submission.owner == MediaEvent.stream(EVENT)
        mp4 = ["event.mp4_state_changed"] if workflow == "vod_ingest" else []
        assert memory.topics == ["event.vod_job_started", *mp4, "event.state_changed", "job.accepted"]
        present = event_of(memory).details.vod_job
        assert present is not None
        assert (present.number, present.workflow, present.publish) == (17, VodWorkflow(workflow), True)

    async def test_a_content_id_becomes_the_one_that_files_are_named_by(self, memory: Memory, handlers: JobHandlers) -> None:
        await an_event(memory)
        accepted = (await handlers.submit_job(job("vod_package", str(EVENT).upper()), invocation=ME)).aggregate
        assert accepted.submission.content_id == str(EVENT)

    @pytest.mark.parametrize("content_id", ["film", str(UUID(int=9))])
    @pytest.mark.parametrize("workflow", [workflow for workflow in VodWorkflow if workflow is not VodWorkflow.COMPOSE])
    async def test_a_job_for_the_content_of_no_event_is_refused(
        self, memory: Memory, handlers: JobHandlers, workflow: str, content_id: str
    ) -> None:
        with pytest.raises(Malformed, match=r"^parameters\.content_id: there is no Event with this content id$"):
            await handlers.submit_job(job(workflow, content_id), invocation=ME)
        assert memory.topics == []

    async def test_a_deleted_event_counts_as_none(self, memory: Memory, handlers: JobHandlers) -> None:
        await an_event(memory, MediaEvent.delete.on(EVENT))
        with pytest.raises(Malformed):
            await handlers.submit_job(job("vod_package"), invocation=ME)

    async def test_an_event_that_is_deleted_meanwhile_gets_no_job(self, memory: Memory, handlers: JobHandlers) -> None:
        await an_event(memory)
        memory.meanwhile(MediaEvent.delete.on(EVENT))
        with pytest.raises(NotFound):
            await handlers.submit_job(job("vod_package"), invocation=ME)
        assert memory.topics == ["event.deleted"]

    async def test_other_workflows_have_no_owner(self, memory: Memory, handlers: JobHandlers) -> None:
        accepted = (await handlers.submit_job(job("probe_media"), invocation=ME)).aggregate
        assert accepted.submission.owner is None

    async def test_a_job_whose_submitter_names_an_owner_keeps_it(self, memory: Memory, handlers: JobHandlers) -> None:
        named = NewJob(client="studio", workflow="vod_package", parameters={"content_id": "film"}, owner="composition:1")
        assert (await handlers.submit_job(named, invocation=ME)).aggregate.submission.owner == "composition:1"
        assert memory.topics == ["job.accepted"]

    async def test_of_two_at_once_one_is_refused(self, memory: Memory, handlers: JobHandlers) -> None:
        await an_event(memory)
        prepared = await handlers.prepare_job(job("vod_package"), transaction_id="")
        memory.meanwhile(*(await prepared.commands()))
        with pytest.raises(Conflict, match=r"^job 17 \(vod_package\) is still producing files for this Event$"):
            await handlers.submit_job(job("vod_ingest"), invocation=ME)
        assert [topic for topic in memory.topics if topic.startswith("job.")] == ["job.accepted"]


class TestRerun:
    async def test_the_event_follows_in_the_same_append(self, memory: Memory, handlers: JobHandlers) -> None:
        await a_live_event(memory)
        await handlers.submit_job(job(), invocation=ME)
        before = memory.log.head
        rerun = (await handlers.rerun_job(17, invocation=ME)).aggregates[0]
        assert [entry.event.TOPIC for entry in memory.log.entries[before:]] == [
            "job.accepted",
            "event.vod_job_started",
            "job.broken",
        ]
        present = event_of(memory).details.vod_job
        assert present is not None
        assert (rerun.number, present.number) == (18, 18)
        assert rerun.submission.parameters["sources"] == ORIGINS

    async def test_beside_another_job_it_is_refused(self, memory: Memory, handlers: JobHandlers) -> None:
        await an_event(memory)
        await handlers.submit_job(job("vod_ingest"), invocation=ME)
        await memory.given(Job.break_off.on(17), MediaEvent.end_vod_job.on(EVENT, 17, VodJobEnd.BROKEN, version=2))
        await handlers.submit_job(job("vod_ingest"), invocation=ME)
        with pytest.raises(Conflict, match="job 18"):
            await handlers.rerun_job(17, invocation=ME)


class TestResume:
    async def broken_and_paused(self, memory: Memory, handlers: JobHandlers) -> None:
        await an_event(memory)
        await handlers.submit_job(job("vod_ingest"), invocation=ME)
        await memory.given(Job.break_off.on(17), MediaEvent.end_vod_job.on(EVENT, 17, VodJobEnd.BROKEN, version=2))
        await handlers.update_job(17, JobChanges(state=JobState.PAUSED), invocation=ME)

    async def test_the_event_goes_on_with_the_job_in_the_same_append(self, memory: Memory, handlers: JobHandlers) -> None:
        await self.broken_and_paused(memory, handlers)
        before = memory.log.head
        await handlers.update_job(17, JobChanges(state=JobState.QUEUED), invocation=ME)
        appended = [entry.event.TOPIC for entry in memory.log.entries[before:]]
        assert appended == ["event.vod_job_started", "event.mp4_state_changed", "job.queued"]
        await memory.given(vod_command(str(EVENT), JobOutcome(kind=OutcomeKind.RESUMED, job=17, version=4)))
        await memory.given(vod_command(str(EVENT), JobOutcome(kind=OutcomeKind.BROKEN, job=17, version=2)))
        present = event_of(memory).details.vod_job
        assert present is not None
        assert (present.version, present.ended) == (4, None), "what is told later is known"

    async def test_beside_another_job_it_is_refused(self, memory: Memory, handlers: JobHandlers) -> None:
        await self.broken_and_paused(memory, handlers)
        await handlers.submit_job(job("vod_ingest"), invocation=ME)
        with pytest.raises(Conflict, match="job 18"):
            await handlers.update_job(17, JobChanges(state=JobState.QUEUED), invocation=ME)

    async def test_so_it_does_where_the_job_is_put_off_until_later(self, memory: Memory, handlers: JobHandlers) -> None:
        await self.broken_and_paused(memory, handlers)
        before = memory.log.head
        await handlers.update_job(17, JobChanges(priority=1, run_at=NOW + timedelta(hours=1)), invocation=ME)
        appended = [entry.event.TOPIC for entry in memory.log.entries[before:]]
        assert appended == ["event.vod_job_started", "event.mp4_state_changed", "job.priority_changed", "job.scheduled"]
        scheduled = memory.log.load(Job.stream(17))
        assert scheduled is not None
        await memory.given(MediaEvent.end_vod_job.on(EVENT, 17, VodJobEnd.COMPLETED, version=scheduled.version + 1))
        present = event_of(memory).details.vod_job
        assert present is not None
        assert present.ended is VodJobEnd.COMPLETED, "the Event follows the job to its end"

    @pytest.mark.parametrize(
        "changes",
        [JobChanges(run_at=NOW), JobChanges(run_at=NOW + timedelta(hours=1), state=JobState.PAUSED)],
        ids=("past", "paused"),
    )
    async def test_and_not_where_the_job_stays_paused(self, memory: Memory, handlers: JobHandlers, changes: JobChanges) -> None:
        await self.broken_and_paused(memory, handlers)
        await handlers.update_job(17, changes, invocation=ME)
        present = event_of(memory).details.vod_job
        assert present is not None
        assert present.ended is VodJobEnd.BROKEN

    async def test_beside_another_job_it_is_not_put_off_either(self, memory: Memory, handlers: JobHandlers) -> None:
        await self.broken_and_paused(memory, handlers)
        await handlers.submit_job(job("vod_ingest"), invocation=ME)
        with pytest.raises(Conflict, match="job 18"):
            await handlers.update_job(17, JobChanges(run_at=NOW + timedelta(hours=1)), invocation=ME)

    async def test_a_job_that_was_only_paused_is_under_way_all_the_time(self, memory: Memory, handlers: JobHandlers) -> None:
        await an_event(memory)
        await handlers.submit_job(job("vod_ingest"), invocation=ME)
        await handlers.update_job(17, JobChanges(state=JobState.PAUSED), invocation=ME)
        before = memory.log.head
        await handlers.update_job(17, JobChanges(state=JobState.QUEUED), invocation=ME)
        assert [entry.event.TOPIC for entry in memory.log.entries[before:]] == ["job.queued"]

    async def test_a_job_that_is_not_paused_cannot_be_resumed(self, memory: Memory, handlers: JobHandlers) -> None:
        await self.broken_and_paused(memory, handlers)
        await handlers.submit_job(job("vod_ingest"), invocation=ME)
        with pytest.raises(Refused, match="only a paused job"):
            await handlers.update_job(18, JobChanges(state=JobState.QUEUED), invocation=ME)


class TestCapture:
    async def test_what_is_left_out_comes_from_the_event(self, memory: Memory, handlers: JobHandlers) -> None:
        await a_live_event(memory)
        accepted = (await handlers.submit_job(job(copy_ts=True), invocation=ME)).aggregate
        assert accepted.submission.parameters == {
            "content_id": str(EVENT),
            "copy_ts": True,
            "sources": ORIGINS,
            "start": "2031-01-02T11:30:00.000Z",
            "end": "2031-01-02T12:30:00.000Z",
        }
        details = event_of(memory).details
        assert (details.capturing_live2_vod, details.capture_vod_start, details.capture_vod_end) == (True, LIVE_AT, STOPPED_AT)
        assert (details.state, details.mp4_state) == (EventState.VOD_INGESTING, Mp4State.GENERATING)

    async def test_the_content_is_filled_in_where_origins_ask_for_it(self, memory: Memory, handlers: JobHandlers) -> None:
        await a_live_event(memory, configuration=channel([outputs("HLS", "https://a.test/{contentId}/live.m3u8")]))
        accepted = (await handlers.submit_job(job(), invocation=ME)).aggregate
        assert accepted.submission.parameters["sources"] == [f"https://a.test/{EVENT}/live.m3u8"]

    async def test_what_is_sent_counts(self, memory: Memory, handlers: JobHandlers) -> None:
        await a_live_event(memory)
        sent: dict[str, Any] = {
            "sources": ["https://c.test/a.mpd"],
            "start": "2031-01-02T14:00:00+02:00",
            "end": "2031-01-02T12:10:00",
        }
        accepted = (await handlers.submit_job(job(**sent), invocation=ME)).aggregate
        assert accepted.submission.parameters == {"content_id": str(EVENT), **sent}
        details = event_of(memory).details
        assert details.capture_vod_start == datetime(2031, 1, 2, 12, 0, tzinfo=UTC)
        assert details.capture_vod_end == datetime(2031, 1, 2, 12, 10, tzinfo=UTC)
        assert accepted.state is JobState.QUEUED

    @pytest.mark.parametrize(
        ("sent", "expected"),
        [(None, NOW + timedelta(hours=1)), (NOW, NOW + timedelta(hours=1)), (NOW + timedelta(hours=2), NOW + timedelta(hours=2))],
    )
    async def test_an_end_in_the_future_schedules_the_job(
        self, memory: Memory, handlers: JobHandlers, sent: datetime | None, expected: datetime
    ) -> None:
        await a_live_event(memory, stopped=False)
        later = job(end=(NOW + timedelta(hours=1)).isoformat(), run_at=sent)
        accepted = (await handlers.submit_job(later, invocation=ME)).aggregate
        assert (accepted.state, accepted.run_at) == (JobState.SCHEDULED, expected)

    async def test_all_that_the_event_does_not_know_is_named(self, memory: Memory, handlers: JobHandlers) -> None:
        await an_event(memory)
        with pytest.raises(Malformed) as refused:
            await handlers.submit_job(job(), invocation=ME)
        assert [(error.field, error.message) for error in refused.value.errors] == [
            ("parameters.sources", "is required: the Event has no channel with live origin URLs"),
            ("parameters.start", "is required: the Event was never live"),
            ("parameters.end", "is required: the Event has not ended"),
        ]

    async def test_the_end_of_an_event_that_is_live_again_is_not_its_last_stop(self, memory: Memory, handlers: JobHandlers) -> None:
        await a_live_event(memory)
        await memory.given(MediaEvent.change_state.on(EVENT, EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR))
        with pytest.raises(Malformed, match=r"^parameters\.end: is required: the Event has not ended$"):
            await handlers.submit_job(job(), invocation=ME)

    async def test_no_sources_are_left_out_ones(self, memory: Memory, handlers: JobHandlers) -> None:
        await a_live_event(memory)
        accepted = (await handlers.submit_job(job(sources=[]), invocation=ME)).aggregate
        assert accepted.submission.parameters["sources"] == ORIGINS

    async def test_a_capture_has_at_most_eight_sources(self, memory: Memory, handlers: JobHandlers) -> None:
        encoders = [[outputs("HLS", f"https://{number}.test/a", f"https://{number}.test/b")] for number in range(5)]
        await a_live_event(memory, configuration=channel(*encoders))
        accepted = (await handlers.submit_job(job(), invocation=ME)).aggregate
        assert len(accepted.submission.parameters["sources"]) == 8

    @pytest.mark.parametrize(("sent", "missing"), [("start", "end"), ("end", "start")])
    async def test_times_from_the_start_of_the_stream_come_together(
        self, memory: Memory, handlers: JobHandlers, sent: str, missing: str
    ) -> None:
        await a_live_event(memory)
        given: dict[str, Any] = {sent: "00:01:00"}
        with pytest.raises(Malformed, match=rf"^parameters\.{missing}: is required: the {sent} is no date-time$"):
            await handlers.submit_job(job(**given), invocation=ME)
        accepted = (await handlers.submit_job(job(start="00:00:00", end="00:01:00"), invocation=ME)).aggregate
        assert (accepted.state, event_of(memory).details.capture_vod_start) == (JobState.QUEUED, None)

    @pytest.mark.parametrize(
        ("encoders", "expected"),
        [
            ([[outputs("DASH", "https://a.test/a.mpd"), outputs("HLS", *ORIGINS)]], ORIGINS),
            ([[outputs("HLS", ORIGINS[0])], [outputs("HLS", ORIGINS[1])]], ORIGINS),
            ([[outputs("HLS", ORIGINS[0], ORIGINS[0])]], ORIGINS[:1]),
            ([[outputs("DASH", None, "https://b.test/a.mpd")]], ["https://b.test/a.mpd"]),
            ([[outputs("HSS", "https://a.test/manifest")], []], []),
            ([[outputs("HLS")]], []),
            ([], []),
            ([[outputs("HLS", "https://a.test/{contentId}/live.m3u8")]], [f"https://a.test/{EVENT}/live.m3u8"]),
            ([[outputs("HLS", "https://{ipAddress}/live.m3u8"), outputs("DASH", ORIGINS[0])]], ORIGINS[:1]),
        ],
    )
    def test_sources_are_the_live_origins_of_one_protocol(self, encoders: list[Any], expected: list[str]) -> None:
        assert live_origins(channel_configuration(channel(*encoders)), content=str(EVENT)) == expected


class TestOutcome:
    def test_each_outcome_is_a_command(self) -> None:
        def command(kind: OutcomeKind, **more: Any) -> Command[Any]:
            return vod_command(str(EVENT), JobOutcome(kind=kind, job=17, version=9, **more))

        assert command(OutcomeKind.RERUN, rerun_of=16) == MediaEvent.move_vod_job.on(EVENT, 17, rerun_of=16)
        assert command(OutcomeKind.RESUMED) == MediaEvent.resume_vod_job.on(EVENT, 17, version=9)
        end = partial(MediaEvent.end_vod_job.on, EVENT, 17, version=9, result=None, quality=None)
        assert command(OutcomeKind.COMPLETED) == end(VodJobEnd.COMPLETED, reason="")
        assert command(OutcomeKind.BROKEN, reason="x") == end(VodJobEnd.BROKEN, reason="x")
        failed = command(OutcomeKind.FAILED, reason="x", metadata={"duration": 3})
        assert failed == end(VodJobEnd.FAILED, reason="x")

    @pytest.mark.parametrize("kind", OutcomeKind)
    async def test_assets_follow_a_completed_job(self, memory: Memory, kind: OutcomeKind) -> None:
        synchronised: list[UUID] = []

        async def sync(event_id: UUID, *, invocation: Invocation) -> None:
            assert invocation == ME
            synchronised.append(event_id)

        follow = assets_follow(AssetSync(sync, memory.notes))
        await follow(str(EVENT), JobOutcome(kind=kind, job=17), ME)
        assert synchronised == ([EVENT] if kind is OutcomeKind.COMPLETED else [])

    @pytest.mark.parametrize(
        ("metadata", "expected"),
        [
            ({"duration": 12}, VodResult(duration=12.0)),
            ({"duration": 12.5, "thumbnail": "poster.jpg"}, VodResult(duration=12.5, thumbnail="poster.jpg")),
            (
                {"drm": {"drm_provider": "THIRDPARTY", "drm_data": ["é"]}},
                VodResult(drm_json='{"drm_provider":"THIRDPARTY","drm_data":["é"]}'),
            ),
            ({"duration": -1, "drm": {}, "thumbnail": ""}, None),
            ({"duration": True, "drm": "x", "thumbnail": 3}, None),
            ({"duration": float("nan")}, None),
        ],
    )
    def test_metadata_is_read_tolerantly(self, metadata: dict[str, Any], expected: VodResult | None) -> None:
        command = vod_command(str(EVENT), JobOutcome(kind=OutcomeKind.COMPLETED, job=17, metadata=metadata))
        assert arguments_of(command, MediaEvent.end_vod_job)["result"] == expected

    def test_the_size_is_that_of_the_mp4(self) -> None:
        files = tuple(
            Output(path="a", name=f"{EVENT}/{name}", size=size, sha256="") for name, size in (("a.mpd", 1), (f"{EVENT}.mp4", 7))
        )
        command = vod_command(str(EVENT), JobOutcome(kind=OutcomeKind.COMPLETED, job=17, files=files))
        assert arguments_of(command, MediaEvent.end_vod_job)["result"] == VodResult(size=7)

"""Use cases of assets over in-memory twins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.asset import events
from domain.asset.aggregate import Asset
from domain.asset.handlers import AssetHandlers, NewAsset, command_of
from domain.asset.ports import AssetFilter
from domain.asset.row import AssetRow
from domain.asset.values import AssetState, AssetType
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventState, Trigger, VodJobEnd, VodResult, VodWorkflow
from domain.job.aggregate import Job
from domain.job.callbacks import JobCallbacks
from domain.job.handlers import JobHandlers
from domain.job.outcome import JobOutcome, OutcomeKind
from domain.job.owners import OwnersOfRooms
from domain.job.values import Output, Submission
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.command import Command
from domain.kernel.errors import Malformed, NotFound, PreconditionFailed, Refused
from domain.kernel.ports import Invocation
from tests.domain.asset.memory_assets import TASKS, AssetWorkflows, MemoryAssets, Numbers
from tests.domain.media_files import MODIFIED, MemoryMediaFiles
from tests.domain.memory import Memory
from tests.domain.scenario import NOW

ME = Invocation.by("studio", correlation_id="transaction-1")
EVENT, KEY, OTHER = UUID(int=1), UUID(int=7), UUID(int=8)
FILM = f"{EVENT}/{EVENT}.mp4"
GOAL = f"{EVENT}/assets/goal.jpg"
NOTED = (b'{"startTime": "2031-01-02T12:00:00Z"}', None, b"{", b"[]", b'{"startTime": 7}', b"x" * 2_000_000)
WANTED = NewAsset(type=AssetType.IMAGE, event_id=EVENT, name="Goal", times={"time": "00:00:01"}, fields={"time": "time"})
CLIP = replace(
    WANTED,
    type=AssetType.VIDEO,
    times={"start": "00:00:01", "end": "00:00:02"},
    fields={"start": "clip.start", "end": "clip.end"},
)


@pytest.fixture
async def memory() -> Memory:
    memory = Memory()
    await memory.given(AddOrUpdateEvent(EVENT, {"title": "Final"}))
    return memory


@pytest.fixture
def files() -> MemoryMediaFiles:
    files = MemoryMediaFiles()
    files.put(FILM, b"film")
    return files


def handlers(memory: Memory, files: MemoryMediaFiles, *, assets: MemoryAssets | None = None) -> AssetHandlers:
    async def load(stream: str) -> AggregateRoot | None:
        return memory.log.load(stream)

    callbacks = JobCallbacks(
        memory.vault, memory.events, memory.records, clock=lambda: memory.now, new_signing_secret=lambda: "whsec_1"
    )
    jobs = JobHandlers(
        memory.executor,
        load,
        numbers=Numbers(),
        workflows=AssetWorkflows(),
        vault=memory.vault,
        callbacks=callbacks,
        owners=OwnersOfRooms(),
        clock=lambda: memory.now,
    )
    lookup = assets or MemoryAssets(memory.log)
    return AssetHandlers(memory.executor, lookup, events=memory.events, files=files, jobs=jobs)


def requested(key: UUID, path: str = "goal.jpg", *, job: int = 3, kind: AssetType = AssetType.IMAGE) -> Command[Asset]:
    return Asset.request.on(key, event_id=EVENT, type=kind, name="Goal", path=f"{EVENT}/assets/{path}", job=job)


def accepted(number: int, owner: UUID) -> Command[Job]:
    facts: dict[str, Any] = {"client": "studio", "workflow": "asset_image", "content_id": str(EVENT), "parameters": {}}
    return Job.accept.on(number, Submission(**facts, tasks=TASKS, owner=Asset.stream(owner)))


def discovered(key: UUID, path: str, size: int = 4) -> Command[Asset]:
    return Asset.discover.on(key, event_id=EVENT, name=path, path=f"{EVENT}/{path}", size=size, modified=MODIFIED)


async def captured(memory: Memory, *, start: datetime | None = None, duration: float | None = None) -> None:
    """Give the Event a VOD file with this start and duration."""
    times = {} if start is None else {"capture_vod_start": start}
    end = MediaEvent.end_vod_job.on(EVENT, 9, VodJobEnd.COMPLETED, version=1, result=VodResult(duration=duration))
    await memory.given(MediaEvent.start_vod_job.on(EVENT, 9, VodWorkflow.CAPTURE, captured=times), end)


async def asked(memory: Memory, files: MemoryMediaFiles, wanted: NewAsset) -> dict[str, Any]:
    """The parameters of the job of a request."""
    await handlers(memory, files).request(wanted, invocation=ME)
    accepted = next(entry for entry in memory.happened if "submission" in entry.facts)
    parameters: dict[str, Any] = accepted.facts["submission"].parameters
    return parameters


class TestRequest:
    async def test_the_job_and_its_asset_are_one_append(self, memory: Memory, files: MemoryMediaFiles) -> None:
        outcome = await handlers(memory, files).request(replace(WANTED, priority=2), invocation=ME)
        assert memory.topics == ["job.accepted", "asset.requested"]
        asset = outcome.aggregate
        assert (asset.path, asset.job, asset.state) == (f"{EVENT}/assets/Goal.jpg", 17, AssetState.GENERATING)
        [job, _] = memory.happened
        submission = job.facts["submission"]
        assert (submission.client, submission.owner, job.facts["priority"]) == ("studio", asset.id, 2)
        assert job.facts["transaction_id"] == "transaction-1"

    async def test_a_path_that_another_takes_meanwhile_gets_a_suffix(self, memory: Memory, files: MemoryMediaFiles) -> None:
        memory.meanwhile(requested(OTHER, "Goal.jpg"))
        asset = (await handlers(memory, files).request(WANTED, invocation=ME)).aggregate
        assert asset.path == f"{EVENT}/assets/Goal-{asset.key[:8]}.jpg"
        [job] = [entry.facts["submission"] for entry in memory.happened if "submission" in entry.facts]
        assert job.parameters["name"] == asset.path.removeprefix(f"{EVENT}/"), "the job makes this one"

    @pytest.mark.parametrize("end", [None, Asset.remove.on(OTHER, running_job=3)])
    async def test_a_removed_asset_keeps_its_path(
        self, memory: Memory, files: MemoryMediaFiles, end: Command[Asset] | None
    ) -> None:
        await memory.given(requested(OTHER, "Goal.jpg"), *([] if end is None else [end]))
        asset = (await handlers(memory, files).request(WANTED, invocation=ME)).aggregate
        assert asset.path != f"{EVENT}/assets/Goal.jpg"

    async def test_an_event_that_is_deleted_meanwhile_is_not_found(self, memory: Memory, files: MemoryMediaFiles) -> None:
        with pytest.raises(NotFound):
            await handlers(memory, files).request(replace(WANTED, event_id=OTHER), invocation=ME)

    async def test_without_an_mp4_file_nothing_can_be_made(self, memory: Memory, files: MemoryMediaFiles) -> None:
        files.put(f"{EVENT}/{EVENT}.ism", b"")
        assert (await asked(memory, files, WANTED))["source"] == f"{EVENT}.mp4"
        await files.remove(FILM)
        with pytest.raises(Refused, match="the Event has no MP4 file"):
            await handlers(memory, files).request(WANTED, invocation=ME)

    @pytest.mark.parametrize(
        ("name", "file"),
        [
            ("Goal 1/2", "Goal 1_2"),
            ("..", "_"),
            ("../../etc", "____etc"),
            (".hidden", "hidden"),
            ("a\x07\u2028b", "a__b"),
            ("ä" * 300, "ä" * 120),
            ("💥", "💥"),
        ],
    )
    async def test_a_file_name_is_made_of_any_name(self, memory: Memory, files: MemoryMediaFiles, name: str, file: str) -> None:
        asset = (await handlers(memory, files).request(replace(WANTED, name=name), invocation=ME)).aggregate
        assert asset.path == f"{EVENT}/assets/{file}.jpg"


class TestTimes:
    START = datetime(2031, 1, 2, 12, 0, tzinfo=UTC)

    async def test_times_from_the_start_are_passed_on(self, memory: Memory, files: MemoryMediaFiles) -> None:
        clip = await asked(memory, files, replace(CLIP, times={"start": "00:00:01.5", "end": "27:00:02"}))
        assert (clip["start"], clip["end"]) == ("00:00:01.500", "27:00:02.000")

    @pytest.mark.parametrize("noted", NOTED)
    async def test_the_start_of_the_stream_is_noted_or_that_of_the_capture(
        self, memory: Memory, files: MemoryMediaFiles, noted: bytes | None
    ) -> None:
        if noted is not None:
            files.put(f"{EVENT}/metadata.json", noted)
        given = noted is not None and noted.startswith(b'{"startTime": "')
        await captured(memory, start=self.START + timedelta(hours=given))
        times = {"start": "2031-01-02T14:00:01.25+02:00", "end": "20310102T120002"}
        clip = await asked(memory, files, replace(CLIP, times=times))
        assert (clip["start"], clip["end"]) == ("00:00:01.250", "00:00:02.000")

    async def test_else_it_is_when_the_event_went_live(self, memory: Memory, files: MemoryMediaFiles) -> None:
        image = replace(WANTED, times={"time": (NOW + timedelta(seconds=3)).isoformat()})
        with pytest.raises(Refused, match="carries no timecode"):
            await handlers(memory, files).request(image, invocation=ME)
        await memory.given(MediaEvent.change_state.on(EVENT, EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR))
        assert (await asked(memory, files, image))["time"] == "00:00:03.000"

    @pytest.mark.parametrize(
        ("times", "why"),
        [
            ({"start": "2031-01-02T11:59:59Z", "end": "00:00:02"}, "is before the start of the stream"),
            ({"start": "2031-01-02T12:00:00Z", "end": "2031-01-08T12:00:00Z"}, "is past the end of the stream"),
            ({"start": "00:00:09", "end": "00:00:10.041"}, "is past the end of the stream"),
            ({"start": "00:01:09", "end": "00:01:10"}, "is past the end of the stream"),
        ],
    )
    async def test_what_the_stream_does_not_have_is_refused(
        self, memory: Memory, files: MemoryMediaFiles, times: dict[str, str], why: str
    ) -> None:
        await captured(memory, start=self.START, duration=10.04)
        with pytest.raises(Refused, match=why):
            await handlers(memory, files).request(replace(CLIP, times=times), invocation=ME)
        assert memory.topics == []

    async def test_a_clip_up_to_the_end_is_taken(self, memory: Memory, files: MemoryMediaFiles) -> None:
        times = {"start": "00:00:09", "end": "00:00:10.040"}
        await captured(memory, duration=10.04)
        assert await asked(memory, files, replace(CLIP, times=times))

    @pytest.mark.parametrize(
        "times",
        [
            {"start": "00:00:02", "end": "00:00:01.999"},
            {"start": "00:00:02", "end": "2031-01-02T12:00:02Z"},
            {"start": "2031-01-02T12:00:02Z", "end": "2031-01-02T12:00:02Z"},
        ],
    )
    async def test_an_end_that_is_not_after_the_start_is_bad_input(
        self, memory: Memory, files: MemoryMediaFiles, times: dict[str, str]
    ) -> None:
        await captured(memory, start=self.START)
        with pytest.raises(Malformed) as refused:
            await handlers(memory, files).request(replace(CLIP, times=times), invocation=ME)
        assert [error.field for error in refused.value.errors] == ["clip.end"]


class TestDeletion:
    async def test_a_running_job_is_broken_off_in_the_same_append(self, memory: Memory, files: MemoryMediaFiles) -> None:
        await memory.given(accepted(3, KEY), requested(KEY))
        outcome = await handlers(memory, files).delete(KEY, invocation=ME)
        assert memory.topics == ["job.broken", "asset.removed"]
        assert outcome.aggregate.key == str(KEY)

    async def test_a_job_that_has_ended_stays_as_it_is(self, memory: Memory, files: MemoryMediaFiles) -> None:
        await memory.given(accepted(3, KEY), requested(KEY), Job.break_off.on(3))
        await handlers(memory, files).delete(KEY, invocation=ME)
        assert memory.topics == ["asset.removed"]

    async def test_an_asset_that_is_completed_meanwhile_is_looked_at_again(self, memory: Memory, files: MemoryMediaFiles) -> None:
        await memory.given(accepted(3, KEY), requested(KEY))
        memory.meanwhile(Asset.complete.on(KEY, 3, job_version=5, sizes={GOAL: 1}))
        await handlers(memory, files).delete(KEY, invocation=ME)
        assert memory.topics == ["asset.completed", "asset.removed"]

    async def test_one_that_is_deleted_meanwhile_is_not_found(self, memory: Memory, files: MemoryMediaFiles) -> None:
        await memory.given(accepted(3, KEY), requested(KEY))
        memory.meanwhile(Asset.remove.on(KEY, running_job=3))
        with pytest.raises(NotFound):
            await handlers(memory, files).delete(KEY, invocation=ME)

    async def test_a_version_that_is_not_the_present_one_is_refused(self, memory: Memory, files: MemoryMediaFiles) -> None:
        await memory.given(accepted(3, KEY), requested(KEY), Asset.rename.on(KEY, "x"))
        with pytest.raises(PreconditionFailed):
            await handlers(memory, files).delete(KEY, invocation=replace(ME, if_match=frozenset({1})))
        assert memory.topics == []

    async def test_all_that_match_are_deleted_or_none(self, memory: Memory, files: MemoryMediaFiles) -> None:
        commands = (discovered(UUID(int=9), "a.ism"), accepted(3, KEY), requested(KEY), accepted(4, OTHER))
        await memory.given(*commands, requested(OTHER, "b.gif", job=4, kind=AssetType.GIF))
        memory.meanwhile(Asset.remove.on(OTHER, running_job=4))
        outcome = await handlers(memory, files).delete_matching(AssetFilter(event_id=EVENT), invocation=ME)
        assert outcome.result == {"deleted": 1}
        assert memory.topics == ["asset.removed", "job.broken", "asset.removed"]

    async def test_nothing_that_matches_is_no_append(self, memory: Memory, files: MemoryMediaFiles) -> None:
        outcome = await handlers(memory, files).delete_matching(AssetFilter(name="x"), invocation=ME)
        assert (outcome.result, memory.topics) == ({"deleted": 0}, [])


class TestSync:
    async def synced(self, memory: Memory, files: MemoryMediaFiles, assets: MemoryAssets | None = None) -> tuple[bool, int, int]:
        result = (await handlers(memory, files, assets=assets).sync(EVENT, invocation=ME)).result
        assert result["path"] == f"{EVENT}/"
        return result["changed"], result["created"], result["deleted"]

    async def test_files_and_assets_agree_afterwards(self, memory: Memory, files: MemoryMediaFiles) -> None:
        gone = requested(KEY)
        await memory.given(gone, Asset.complete.on(KEY, 3, job_version=5, sizes={GOAL: 1}), requested(OTHER, "later.jpg", job=4))
        files.put(f"{EVENT}/hls/1.m3u8", b"x")
        files.put(f"{OTHER}/other.mp4", b"x")
        assert await self.synced(memory, files) == (False, 2, 1)
        assert memory.topics == ["asset.discovered", "asset.discovered", "asset.removed"]
        paths = [entry.facts["path"] for entry in memory.happened if entry.event is events.Discovered]
        assert paths == [FILM, f"{EVENT}/hls/1.m3u8"]
        before = len(memory.topics)
        assert await self.synced(memory, files) == (False, 0, 0)
        assert len(memory.topics) == before

    async def test_a_file_that_a_request_claims_meanwhile_is_not_found(self, memory: Memory, files: MemoryMediaFiles) -> None:
        files.put(GOAL, b"x")
        memory.meanwhile(requested(KEY))
        assert await self.synced(memory, files) == (False, 1, 0)

    async def test_a_file_that_is_deleted_meanwhile_is_not_found(self, memory: Memory, files: MemoryMediaFiles) -> None:
        """The files are looked at after the assets: a file whose asset has let it go is gone by then."""
        remaining = requested(KEY)
        await memory.given(remaining, Asset.remove.on(KEY, running_job=3))
        files.put(GOAL, b"x")

        class Deleting(MemoryAssets):
            async def of_event(self, event_id: UUID) -> Sequence[AssetRow]:
                await files.remove(GOAL)
                await memory.another().execute(Asset.release_path.on(KEY), invocation=ME)
                return await super().of_event(event_id)

        assert await self.synced(memory, files, Deleting(memory.log)) == (False, 1, 0)

    @pytest.mark.parametrize("change", [{"content": b"longer"}, {"modified": MODIFIED + timedelta(seconds=1)}])
    async def test_a_change_of_the_vod_file_is_told(self, memory: Memory, files: MemoryMediaFiles, change: dict[str, Any]) -> None:
        await self.synced(memory, files)
        files.put(FILM, **{"content": b"film", **change})
        assert [await self.synced(memory, files) for _ in range(2)] == [(True, 0, 0), (False, 0, 0)]
        assert memory.topics == ["asset.discovered", "asset.file_changed"]

    async def test_without_an_event_or_a_vod_file_it_is_refused(self, memory: Memory, files: MemoryMediaFiles) -> None:
        with pytest.raises(NotFound):
            await handlers(memory, files).sync(OTHER, invocation=ME)
        await files.remove(FILM)
        with pytest.raises(Refused):
            await handlers(memory, files).sync(EVENT, invocation=ME)


OUTPUT = Output(path="a", name=GOAL, size=7, sha256="00")
TOLD: Sequence[tuple[JobOutcome, AssetState]] = [
    (JobOutcome(kind=OutcomeKind.COMPLETED, job=3, version=5, files=(OUTPUT,)), AssetState.COMPLETED),
    (JobOutcome(kind=OutcomeKind.COMPLETED, job=3, version=5), AssetState.FAILED),
    (JobOutcome(kind=OutcomeKind.FAILED, job=3, version=5, reason="no"), AssetState.FAILED),
    (JobOutcome(kind=OutcomeKind.BROKEN, job=3, version=5, reason="broken"), AssetState.FAILED),
    (JobOutcome(kind=OutcomeKind.RESUMED, job=3, version=5), AssetState.GENERATING),
    (JobOutcome(kind=OutcomeKind.RERUN, job=4, version=1, rerun_of=3), AssetState.GENERATING),
]


@pytest.mark.parametrize(("outcome", "state"), TOLD)
async def test_each_outcome_of_a_job_is_a_command_that_may_be_repeated(
    memory: Memory, outcome: JobOutcome, state: AssetState
) -> None:
    await memory.given(requested(KEY))
    asset = (await memory.executor.execute(command_of(str(KEY), outcome), invocation=ME)).aggregate
    assert asset.state is state
    again = await memory.executor.execute(command_of(str(KEY), outcome), invocation=ME)
    assert again.position is None

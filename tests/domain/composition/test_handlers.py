"""Use cases of compositions over in-memory twins: each is one append of the composition, its Event and its job."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.channel.secrets import split
from domain.composition.aggregate import Composition
from domain.composition.handlers import CompositionHandlers, CompositionJobOwners, NewComposition, commands_of
from domain.composition.values import CompositionKind, CompositionState, Item, ItemType, Playlist
from domain.event.aggregate import MediaEvent
from domain.event.changes import EventChanges
from domain.event.commands import (
    AddOrUpdateEvent,
)
from domain.event.deletion import EventDeletion
from domain.event.values import EventState, Mp4State, Trigger, VodJobEnd, VodWorkflow
from domain.job.aggregate import Job
from domain.job.handlers import JobChanges, JobHandlers
from domain.job.outcome import JobOutcome, OutcomeKind
from domain.job.ports import CheckedJob
from domain.job.values import JobState, Output
from domain.kernel.errors import Conflict, Malformed, NotFound, PreconditionFailed, Refused
from domain.kernel.ports import Invocation, Plan
from domain.record.configured_record import SentConfiguration
from domain.record.kinds.channel import Channel
from domain.record.kinds.flow import Flow
from domain.record.record import RegisterRecord
from tests.domain.asset.memory_assets import TASKS
from tests.domain.channel.texts_given import CHANNEL, FLOW
from tests.domain.composition.compositions_given import ANOTHER, EVENT, LATER, OTHER, PLAYLIST, SOURCE, item, marked, playlist
from tests.domain.composition.memory_compositions import MemoryCompositions, composition_handlers, job_handlers
from tests.domain.memory import Memory
from tests.domain.scenario import NOW

ME = Invocation.by("studio", correlation_id="transaction-1")
CHANNEL_ID, PLAIN_CHANNEL, FLOW_ID = UUID(int=21), UUID(int=22), UUID(int=23)
FILE = playlist(Item(type=ItemType.DIRECT_FULL_MP4, value="https://cdn.example.com/a.mp4"), item(), looped=True)
FILM = NewComposition(kind=CompositionKind.STANDARD, playlist=PLAYLIST, event_id=EVENT)


def sent(configuration: dict[str, Any]) -> SentConfiguration:
    separated = split(json.dumps(configuration))
    return SentConfiguration(separated.text, {}, separated.holders, separated.nulls)


@pytest.fixture
async def memory() -> Memory:
    memory = Memory()
    plain = {**CHANNEL, "encoders": [{**CHANNEL["encoders"][0], "supportsComposition": False}]}
    await memory.given(
        *(
            AddOrUpdateEvent(key, {"title": "x"}, mp4_state=None if key == EVENT else Mp4State.AVAILABLE, new=True)
            for key in (EVENT, SOURCE, OTHER)
        ),
        RegisterRecord(CHANNEL_ID, Channel, {"name": "one", "configuration_json": sent(CHANNEL)}, new=True),
        RegisterRecord(PLAIN_CHANNEL, Channel, {"name": "two", "configuration_json": sent(plain)}, new=True),
        RegisterRecord(FLOW_ID, Flow, {"name": "flow", "configuration_json": sent(FLOW)}, new=True),
    )
    return memory


@pytest.fixture
def jobs(memory: Memory) -> JobHandlers:
    return job_handlers(memory)


@pytest.fixture
def handlers(memory: Memory, jobs: JobHandlers) -> CompositionHandlers:
    return composition_handlers(memory, jobs=jobs)


def film(**more: Any) -> NewComposition:
    return NewComposition(**{"kind": CompositionKind.STANDARD, "playlist": PLAYLIST, "event_id": EVENT, **more})


def for_encoder(channel: UUID | None = CHANNEL_ID, **more: Any) -> NewComposition:
    changes = EventChanges({"channel_id": channel} if channel else {})
    return NewComposition(**{"kind": CompositionKind.ENCODER, "playlist": FILE, "changes": changes, "event_id": EVENT, **more})


def event_of(memory: Memory, key: UUID = EVENT) -> MediaEvent:
    root = memory.log.load(MediaEvent.stream(key))
    assert isinstance(root, MediaEvent)
    return root


def shown(memory: Memory, key: UUID = EVENT) -> tuple[EventState, Mp4State]:
    details = event_of(memory, key).details
    return details.state, details.mp4_state


def job(memory: Memory, number: int) -> Job:
    root = memory.log.load(Job.stream(number))
    assert isinstance(root, Job)
    return root


async def stored(memory: Memory, key: UUID = EVENT) -> Any:
    return await MemoryCompositions(memory.log).of_event(key)


async def tell(memory: Memory, kind: OutcomeKind, number: int, *, version: int = 9, **more: Any) -> None:
    """The outcome of a job, as its owner is told of it."""
    outcome = JobOutcome(kind=kind, job=number, version=version, content_id=str(EVENT), **more)
    owner = job(memory, number).submission.owner
    assert owner is not None

    async def plan() -> Plan:
        return commands_of(owner.partition(":")[2], outcome)

    await memory.executor.execute(plan, invocation=Invocation.by("system"))


async def complete(memory: Memory, number: int, **metadata: Any) -> None:
    files = (Output(path="a", name=f"{EVENT}/{EVENT}.mp4", size=7, sha256="0" * 64),)
    await tell(memory, OutcomeKind.COMPLETED, number, files=files, metadata=metadata)


class TestComposing:
    async def test_the_event_the_job_and_the_playlist_are_one_append(self, memory: Memory, handlers: CompositionHandlers) -> None:
        wanted = film(playlist=playlist(marked(("00:00:02", "00:00:30"), start="00:00:01", frameAccurate=True, Note="x")))
        composition = (await handlers.compose(wanted, invocation=ME)).aggregate
        assert memory.topics == [
            "job.accepted",
            "event.vod_job_started",
            "event.mp4_state_changed",
            "event.state_changed",
            "composition.composed",
            "composition.generation_started",
        ]
        assert shown(memory) == (EventState.COMPOSE_GENERATING, Mp4State.GENERATING)
        submission = memory.happened[0].facts["submission"]
        assert (submission.owner, submission.client, submission.workflow) == (composition.id, "studio", "compose")
        assert submission.parameters == {
            "content_id": str(EVENT),
            "generation": 1,
            "playlist": {
                "name": "Evening",
                "looped": False,
                "items": [
                    {
                        "type": 0,
                        "value": str(SOURCE),
                        "properties": {"start": "00:00:01", "frameAccurate": True},
                        "markers": [{"startAt": "00:00:02", "duration": "00:00:30", "type": 0}],
                    }
                ],
            },
            "publish": True,
        }

    async def test_a_new_event_has_the_fields_and_its_flow_is_told(self, memory: Memory, handlers: CompositionHandlers) -> None:
        changes = EventChanges({"title": "Evening", "flow_id": FLOW_ID, "vod_drm": True})
        composition = (await handlers.compose(film(event_id=None, changes=changes), invocation=ME)).aggregate
        details = event_of(memory, composition.event_id).details
        assert (details.title, details.flow_id, details.vod_drm) == ("Evening", FLOW_ID, True)
        [accepted] = [entry for entry in memory.happened if "submission" in entry.facts]
        assert [callback.url for callback in accepted.facts["submission"].callbacks] == ["http://callback"]

    async def test_an_id_that_nobody_has_is_that_of_the_new_event(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await handlers.compose(film(event_id=UUID(int=99)), invocation=ME)
        assert shown(memory, UUID(int=99))[0] is EventState.COMPOSE_GENERATING

    async def test_a_later_start_waits_without_a_job(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await handlers.compose(film(live_stream_start=LATER), invocation=ME)
        assert memory.topics == ["event.state_changed", "composition.composed"]
        assert shown(memory) == (EventState.COMPOSE_WAITING, Mp4State.NONE)

    async def test_a_past_start_is_at_once(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await handlers.compose(film(live_stream_start=NOW), invocation=ME)
        assert shown(memory)[0] is EventState.COMPOSE_GENERATING

    async def test_an_event_has_one_playlist(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await handlers.compose(FILM, invocation=ME)
        for again in (FILM, for_encoder()):
            with pytest.raises(Refused, match="has a playlist"):
                await handlers.compose(again, invocation=ME)

    async def test_of_two_at_once_one_is_refused(self, memory: Memory, handlers: CompositionHandlers, jobs: JobHandlers) -> None:
        theirs = composition_handlers(memory, jobs=jobs)

        async def meanwhile() -> None:
            await theirs.compose(for_encoder(), invocation=ME)

        memory.executor.interruptions.append(meanwhile)
        with pytest.raises(Refused, match="has a playlist"):
            await handlers.compose(FILM, invocation=ME)
        assert "job.accepted" not in memory.topics

    @pytest.mark.parametrize(
        ("wanted", "fields"),
        [
            (film(playlist=playlist(item(), item(UUID(int=77)))), ["playlist.items[1].value"]),
            (film(playlist=playlist(item(EVENT))), ["playlist.items[0].value"]),
            (film(playlist=Playlist()), ["playlist.items"]),
            (
                film(changes=EventChanges({"flow_id": UUID(int=77), "category_ids": (UUID(int=77),), "room_id": UUID(int=77)})),
                ["event.categoryIds", "event.roomId", "event.workflowId"],
            ),
            (for_encoder(UUID(int=77)), ["event.channelId"]),
            (for_encoder(playlist=playlist(marked(("00:00:01", "00:00:01")))), ["playlist.items[0].markers"]),
        ],
    )
    async def test_bad_input_changes_nothing(
        self, memory: Memory, handlers: CompositionHandlers, wanted: NewComposition, fields: list[str]
    ) -> None:
        with pytest.raises(Malformed) as refusal:
            await handlers.compose(wanted, invocation=ME)
        assert sorted(error.field for error in refusal.value.errors) == fields
        assert not memory.topics

    async def test_events_of_items_must_not_be_deleted(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await memory.given(MediaEvent.delete.on(SOURCE))
        with pytest.raises(Malformed):
            await handlers.compose(FILM, invocation=ME)

    @pytest.mark.parametrize("wanted", [FILM, for_encoder()])
    async def test_a_deleted_event_gets_none(self, memory: Memory, handlers: CompositionHandlers, wanted: NewComposition) -> None:
        await memory.given(MediaEvent.delete.on(EVENT))
        with pytest.raises(Conflict, match="restore it first"):
            await handlers.compose(wanted, invocation=ME)

    @pytest.mark.parametrize("start", [None, LATER])
    async def test_no_film_is_made_of_a_live_event(self, memory: Memory, handlers: CompositionHandlers, start: Any) -> None:
        await memory.given(MediaEvent.change_state.on(EVENT, EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR))
        with pytest.raises(Refused, match="is live"):
            await handlers.compose(film(live_stream_start=start), invocation=ME)
        assert not memory.topics

    async def test_another_job_of_the_event_comes_first(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await memory.given(MediaEvent.start_vod_job.on(EVENT, 3, VodWorkflow.PACKAGE))
        with pytest.raises(Conflict, match="is still producing files for this Event"):
            await handlers.compose(FILM, invocation=ME)
        await memory.given(MediaEvent.end_vod_job.on(EVENT, 3, VodJobEnd.COMPLETED, version=4))
        await handlers.compose(FILM, invocation=ME)
        assert shown(memory)[0] is EventState.COMPOSE_GENERATING

    async def test_an_encoder_gets_its_playlist_without_a_job(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await handlers.compose(for_encoder(), invocation=ME)
        assert memory.topics == ["event.channel_assigned", "composition.composed"]
        assert shown(memory) == (EventState.PRE_LIVE, Mp4State.NONE)

    async def test_a_channel_must_be_able_to_compose(self, memory: Memory, handlers: CompositionHandlers) -> None:
        with pytest.raises(Refused, match="no channel with an encoder"):
            await handlers.compose(for_encoder(PLAIN_CHANNEL), invocation=ME)
        assert not memory.topics


class TestEnds:
    @pytest.mark.parametrize(("private", "state"), [(False, EventState.COMPOSE_PUBLIC), (True, EventState.COMPOSE_PRIVATE)])
    async def test_the_event_shows_the_film(
        self, memory: Memory, handlers: CompositionHandlers, private: bool, state: EventState
    ) -> None:
        await handlers.compose(film(private=private), invocation=ME)
        await complete(memory, 17, duration=5.5, drm={"drm_provider": "x"}, thumbnail="poster.jpg")
        details = event_of(memory).details
        assert shown(memory) == (state, Mp4State.AVAILABLE)
        assert (details.drm_json, details.thumbnail) == ('{"drm_provider":"x"}', "poster.jpg")
        assert details.vod_file is not None
        assert (details.vod_file.duration, details.vod_file.size) == (5.5, 7)
        assert (await stored(memory)).state is CompositionState.GENERATED
        before = memory.log.head
        await complete(memory, 17)
        assert memory.log.head == before, "once"

    @pytest.mark.parametrize("kind", [OutcomeKind.FAILED, OutcomeKind.BROKEN])
    async def test_or_that_there_is_none(self, memory: Memory, handlers: CompositionHandlers, kind: OutcomeKind) -> None:
        await handlers.compose(FILM, invocation=ME)
        await tell(memory, kind, 17, reason="no source")
        assert shown(memory) == (EventState.COMPOSE_ERROR, Mp4State.FAILED)
        assert ((await stored(memory)).state, (await stored(memory)).reason) == (CompositionState.FAILED, "no source")

    async def test_a_state_that_an_operator_set_stays(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await handlers.compose(FILM, invocation=ME)
        await memory.given(MediaEvent.change_state.on(EVENT, EventState.SUSPENDED, trigger=Trigger.OPERATOR))
        await complete(memory, 17)
        assert shown(memory) == (EventState.SUSPENDED, Mp4State.AVAILABLE)

    async def test_a_repeated_job_makes_the_same_film(
        self, memory: Memory, handlers: CompositionHandlers, jobs: JobHandlers
    ) -> None:
        await handlers.compose(film(private=True), invocation=ME)
        await tell(memory, OutcomeKind.FAILED, 17, reason="no")
        outcome = await jobs.rerun_job(17, invocation=ME)
        number = int(outcome.aggregates[0].key)
        assert shown(memory) == (EventState.COMPOSE_GENERATING, Mp4State.GENERATING)
        assert ((await stored(memory)).job, (await stored(memory)).generation) == (number, 1)
        await tell(memory, OutcomeKind.RERUN, number, rerun_of=17, version=1)
        await complete(memory, number)
        assert shown(memory)[0] is EventState.COMPOSE_PRIVATE

    @pytest.mark.parametrize(("private", "state"), [(False, EventState.COMPOSE_PUBLIC), (True, EventState.COMPOSE_PRIVATE)])
    @pytest.mark.parametrize("again", ["repeated", "resumed"])
    async def test_it_is_as_private_after_another_job_of_the_event(
        self, memory: Memory, handlers: CompositionHandlers, jobs: JobHandlers, private: bool, state: EventState, again: str
    ) -> None:
        await handlers.compose(film(private=private), invocation=ME)
        await memory.given(Job.break_off.on(17))
        await tell(memory, OutcomeKind.BROKEN, 17, version=2)
        package = MediaEvent.start_vod_job.on(EVENT, 3, VodWorkflow.PACKAGE, publish=not private)
        await memory.given(package, MediaEvent.end_vod_job.on(EVENT, 3, VodJobEnd.COMPLETED, version=4))
        number = 17
        if again == "repeated":
            number = int((await jobs.rerun_job(17, invocation=ME)).aggregates[0].key)
        else:
            await jobs.update_job(17, JobChanges(state=JobState.PAUSED), invocation=ME)
            await jobs.update_job(17, JobChanges(state=JobState.QUEUED), invocation=ME)
        assert shown(memory)[0] is EventState.COMPOSE_GENERATING
        await complete(memory, number)
        assert shown(memory)[0] is state

    async def test_only_compositions_submit_such_jobs(self, memory: Memory) -> None:
        with pytest.raises(Malformed):
            await CompositionJobOwners().of(CheckedJob("compose", str(EVENT), {}, (), TASKS), run_at=None)


class TestReplacing:
    async def test_the_job_is_replaced(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await handlers.compose(FILM, invocation=ME)
        for number, name in enumerate("abc", 18):
            await handlers.replace(EVENT, CompositionKind.STANDARD, changes={"name": name}, invocation=ME)
            assert (job(memory, number - 1).state, job(memory, number).state) == (JobState.BROKEN, JobState.QUEUED)
        row = await stored(memory)
        assert (row.job, row.generation, row.playlist) == (20, 4, PLAYLIST.model_copy(update={"name": "c"}))
        await tell(memory, OutcomeKind.BROKEN, 19)
        await complete(memory, 18)
        assert shown(memory) == (EventState.COMPOSE_GENERATING, Mp4State.GENERATING), "earlier jobs say nothing"
        await complete(memory, 20)
        assert shown(memory) == (EventState.COMPOSE_PUBLIC, Mp4State.AVAILABLE)

    async def test_a_film_is_made_anew(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await handlers.compose(FILM, invocation=ME)
        await complete(memory, 17)
        changes = {"items": ANOTHER.items, "looped": True}
        made = (await handlers.replace(EVENT, CompositionKind.STANDARD, changes=changes, invocation=ME)).aggregate
        assert made.playlist == Playlist(name="Evening", items=ANOTHER.items, looped=True)
        assert shown(memory) == (EventState.COMPOSE_GENERATING, Mp4State.GENERATING)

    @pytest.mark.parametrize("changes", [{}, {"name": "Evening"}, {"items": PLAYLIST.items, "looped": False}])
    async def test_what_changes_nothing_starts_nothing(
        self, memory: Memory, handlers: CompositionHandlers, changes: dict[str, Any]
    ) -> None:
        await handlers.compose(FILM, invocation=ME)
        before = memory.log.head
        await handlers.replace(EVENT, CompositionKind.STANDARD, changes=changes, invocation=ME)
        assert memory.log.head == before

    async def test_one_that_waits_goes_on_waiting(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await handlers.compose(film(live_stream_start=LATER), invocation=ME)
        await handlers.replace(EVENT, CompositionKind.STANDARD, changes={"name": "b"}, invocation=ME)
        assert shown(memory)[0] is EventState.COMPOSE_WAITING
        assert ((await stored(memory)).live_stream_start, (await stored(memory)).job) == (LATER, None)

    async def test_an_outcome_that_comes_between_is_seen(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await handlers.compose(FILM, invocation=ME)

        async def meanwhile() -> None:
            other, memory.executor = memory.executor, memory.another()
            await complete(memory, 17)
            memory.executor = other

        memory.executor.interruptions.append(meanwhile)
        await handlers.replace(EVENT, CompositionKind.STANDARD, changes={"name": "b"}, invocation=ME)
        assert shown(memory)[0] is EventState.COMPOSE_GENERATING
        assert (await stored(memory)).generation == 2

    async def test_what_cannot_be_replaced(self, memory: Memory, handlers: CompositionHandlers) -> None:
        for event in (EVENT, UUID(int=77)):
            with pytest.raises(NotFound):
                await handlers.replace(event, CompositionKind.STANDARD, changes={"name": "b"}, invocation=ME)
        await handlers.compose(FILM, invocation=ME)
        with pytest.raises(Refused):
            await handlers.replace(EVENT, CompositionKind.ENCODER, changes={"name": "b"}, invocation=ME)
        for items in ((), (item(EVENT),), (item(UUID(int=77)),)):
            with pytest.raises(Malformed):
                await handlers.replace(EVENT, CompositionKind.STANDARD, changes={"items": items}, invocation=ME)
        stale = Invocation(ME.cause, if_match=frozenset({7}))
        with pytest.raises(PreconditionFailed):
            await handlers.replace(EVENT, CompositionKind.STANDARD, changes={"name": "b"}, invocation=stale)

    async def test_bad_items_are_told_before_what_is_not_there(self, memory: Memory, handlers: CompositionHandlers) -> None:
        for items in ((), (item(UUID(int=77)),), FILE.items):
            with pytest.raises(Malformed):
                await handlers.replace(UUID(int=77), CompositionKind.STANDARD, changes={"items": items}, invocation=ME)
        await handlers.compose(FILM, invocation=ME)
        with pytest.raises(Malformed):
            await handlers.replace(EVENT, CompositionKind.ENCODER, changes={"items": ()}, invocation=ME)

    async def test_an_encoder_gets_its_first_or_another_one(self, memory: Memory, handlers: CompositionHandlers) -> None:
        with pytest.raises(Refused, match="no channel"):
            await handlers.replace(EVENT, CompositionKind.ENCODER, changes={"items": FILE.items}, invocation=ME)
        await memory.given(AddOrUpdateEvent(EVENT, {"channel_id": CHANNEL_ID}))
        with pytest.raises(Malformed):
            await handlers.replace(EVENT, CompositionKind.ENCODER, changes={"name": "b"}, invocation=ME)
        await handlers.replace(EVENT, CompositionKind.ENCODER, changes={"items": FILE.items}, invocation=ME)
        await memory.given(MediaEvent.change_state.on(EVENT, EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR))
        made = (await handlers.replace(EVENT, CompositionKind.ENCODER, changes={"looped": True}, invocation=ME)).aggregate
        assert made.playlist == Playlist(items=FILE.items, looped=True)
        assert memory.topics == ["composition.playlist_replaced"]
        with pytest.raises(Refused):
            await handlers.replace(EVENT, CompositionKind.STANDARD, changes={"name": "b"}, invocation=ME)


class TestCloning:
    async def test_an_event_gets_a_copy_of_its_own(self, memory: Memory, handlers: CompositionHandlers) -> None:
        source = (await handlers.compose(film(private=True, live_stream_start=LATER), invocation=ME)).aggregate
        made = (await handlers.clone(EVENT, OTHER, invocation=ME)).aggregate
        assert (made.playlist, made.event_id, made.private, made.live_stream_start) == (PLAYLIST, OTHER, True, None)
        assert made.id != source.id
        assert shown(memory, OTHER)[0] is EventState.COMPOSE_GENERATING

    async def test_it_takes_the_place_of_the_present_one(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await handlers.compose(FILM, invocation=ME)
        await handlers.compose(film(event_id=OTHER, playlist=ANOTHER_OF_SOURCE), invocation=ME)
        made = (await handlers.clone(EVENT, OTHER, invocation=ME)).aggregate
        assert (made.playlist, made.generation, made.running_job) == (PLAYLIST, 2, 19)
        assert job(memory, 18).state is JobState.BROKEN

    async def test_a_copy_of_itself_changes_nothing(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await handlers.compose(film(live_stream_start=LATER), invocation=ME)
        before = memory.log.head
        await handlers.clone(EVENT, EVENT, invocation=ME)
        assert memory.log.head == before

    async def test_what_cannot_be_cloned(self, memory: Memory, handlers: CompositionHandlers) -> None:
        nobody = UUID(int=77)
        await handlers.compose(FILM, invocation=ME)
        for source, target in ((EVENT, nobody), (nobody, EVENT), (OTHER, EVENT)):
            with pytest.raises(NotFound):
                await handlers.clone(source, target, invocation=ME)
        with pytest.raises(Malformed):
            await handlers.clone(EVENT, SOURCE, invocation=ME)
        await handlers.compose(for_encoder(event_id=OTHER), invocation=ME)
        for source, target in ((EVENT, OTHER), (OTHER, EVENT)):
            with pytest.raises(Refused):
                await handlers.clone(source, target, invocation=ME)

    async def test_one_of_an_encoder_needs_a_channel(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await handlers.compose(for_encoder(), invocation=ME)
        with pytest.raises(Refused, match="no channel"):
            await handlers.clone(EVENT, OTHER, invocation=ME)
        await memory.given(AddOrUpdateEvent(OTHER, {"channel_id": CHANNEL_ID}))
        made = (await handlers.clone(EVENT, OTHER, invocation=ME)).aggregate
        assert (made.playlist, made.kind, made.job) == (FILE, CompositionKind.ENCODER, None)
        assert memory.topics == ["composition.composed"]


ANOTHER_OF_SOURCE = playlist(item(start="00:00:01"))


class TestDeleting:
    async def test_the_job_is_broken_off(self, memory: Memory, handlers: CompositionHandlers, jobs: JobHandlers) -> None:
        await handlers.compose(FILM, invocation=ME)
        await handlers.delete(EVENT, invocation=ME)
        assert shown(memory) == (EventState.PRE_LIVE, Mp4State.NONE)
        assert job(memory, 17).state is JobState.BROKEN
        before = memory.log.head
        await tell(memory, OutcomeKind.BROKEN, 17)
        assert memory.log.head == before
        with pytest.raises(Refused):
            await jobs.rerun_job(17, invocation=ME)

    async def test_a_film_stays(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await handlers.compose(FILM, invocation=ME)
        await complete(memory, 17, duration=5)
        await handlers.delete(EVENT, invocation=ME)
        assert shown(memory) == (EventState.COMPOSE_PUBLIC, Mp4State.AVAILABLE)
        await handlers.compose(film(playlist=ANOTHER), invocation=ME)
        assert (await stored(memory)).generation == 2
        await handlers.delete(EVENT, invocation=ME)
        assert shown(memory) == (EventState.PRE_LIVE, Mp4State.AVAILABLE), "that of the first playlist"

    async def test_nothing_waits_any_more(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await handlers.compose(film(live_stream_start=LATER), invocation=ME)
        await handlers.delete(EVENT, invocation=ME)
        assert shown(memory) == (EventState.PRE_LIVE, Mp4State.NONE)
        before = memory.log.head
        await handlers.generate_on_schedule(EVENT, LATER, invocation=ME)
        assert memory.log.head == before

    async def test_what_is_not_there(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await handlers.compose(for_encoder(), invocation=ME)
        await memory.given(MediaEvent.delete.on(EVENT))
        for event in (UUID(int=77), OTHER, EVENT):
            with pytest.raises(Malformed):
                await handlers.delete(event, invocation=ME)

    async def test_a_film_of_a_playlist_that_came_and_went_between_counts(
        self, memory: Memory, handlers: CompositionHandlers, jobs: JobHandlers
    ) -> None:
        theirs = composition_handlers(memory, jobs=jobs)

        async def meanwhile() -> None:
            await theirs.compose(FILM, invocation=ME)
            await theirs.delete(EVENT, invocation=ME)

        memory.executor.interruptions.append(meanwhile)
        made = (await handlers.compose(film(playlist=ANOTHER), invocation=ME)).aggregate
        assert made.generation == 2


class TestDeletedEvents:
    @pytest.mark.parametrize("start", [None, LATER])
    async def test_no_film_is_made_of_a_deleted_event(self, memory: Memory, handlers: CompositionHandlers, start: Any) -> None:
        await handlers.compose(film(live_stream_start=start), invocation=ME)
        deletion = EventDeletion(memory.executor, memory.load, compositions=handlers, clock=lambda: NOW)
        await deletion.delete(EVENT, invocation=ME)
        if start is None:
            assert job(memory, 17).state is JobState.BROKEN
            await tell(memory, OutcomeKind.BROKEN, 17)
        await memory.given(MediaEvent.restore.on(EVENT))
        await handlers.generate_on_schedule(EVENT, LATER, invocation=ME)
        assert shown(memory)[0] is EventState.COMPOSE_ERROR
        assert ((await stored(memory)).reason, memory.topics) == ("the Event was deleted", [])
        await handlers.replace(EVENT, CompositionKind.STANDARD, changes={"name": "b"}, invocation=ME)
        assert shown(memory)[0] is EventState.COMPOSE_GENERATING

    async def test_a_playlist_that_comes_between_is_ended_too(
        self, memory: Memory, handlers: CompositionHandlers, jobs: JobHandlers
    ) -> None:
        theirs = composition_handlers(memory, jobs=jobs)

        async def meanwhile() -> None:
            other, memory.executor = memory.executor, memory.another()
            await theirs.compose(FILM, invocation=ME)
            memory.executor = other

        memory.executor.interruptions.append(meanwhile)
        deletion = EventDeletion(memory.executor, memory.load, compositions=handlers, clock=lambda: NOW)
        await deletion.delete(EVENT, invocation=ME)
        assert event_of(memory).deleted
        assert job(memory, 17).state is JobState.BROKEN

    async def test_one_that_waits_is_given_up_at_its_time(self, memory: Memory, handlers: CompositionHandlers) -> None:
        """The deletion did not know of the playlist."""
        await handlers.compose(film(live_stream_start=LATER), invocation=ME)
        await memory.given(MediaEvent.delete.on(EVENT))
        await handlers.generate_on_schedule(EVENT, LATER, invocation=ME)
        assert memory.topics == ["composition.generation_failed"]


class TestTheSchedule:
    async def test_a_film_is_made_at_its_time_once_and_for_its_client(self, memory: Memory, handlers: CompositionHandlers) -> None:
        await handlers.compose(film(live_stream_start=LATER), invocation=ME)
        memory.now = LATER + timedelta(days=9)
        await handlers.generate_on_schedule(EVENT, LATER - timedelta(seconds=1), invocation=Invocation.by("system"))
        assert shown(memory)[0] is EventState.COMPOSE_WAITING, "another time"
        for _ in range(2):
            await handlers.generate_on_schedule(EVENT, LATER, invocation=Invocation.by("system"))
        assert memory.topics.count("job.accepted") == 1
        assert job(memory, 17).submission.client == "studio"
        assert shown(memory) == (EventState.COMPOSE_GENERATING, Mp4State.GENERATING)

    async def test_of_two_timekeepers_one_makes_it(self, memory: Memory, handlers: CompositionHandlers, jobs: JobHandlers) -> None:
        await handlers.compose(film(live_stream_start=LATER), invocation=ME)
        theirs = composition_handlers(memory, jobs=jobs)

        async def meanwhile() -> None:
            await theirs.generate_on_schedule(EVENT, LATER, invocation=ME)

        memory.executor.interruptions.append(meanwhile)
        await handlers.generate_on_schedule(EVENT, LATER, invocation=ME)
        assert memory.topics.count("composition.generation_started") == 1


async def test_drm_is_that_of_the_event(memory: Memory, handlers: CompositionHandlers) -> None:
    with pytest.raises(NotFound):
        await handlers.set_drm(EVENT, "{}", invocation=ME)
    await handlers.compose(FILM, invocation=ME)
    made = (await handlers.set_drm(EVENT, '{"a": 1}', invocation=ME)).aggregate
    assert isinstance(made, Composition)
    assert event_of(memory).details.drm_json == '{"a": 1}'
    await handlers.set_drm(EVENT, None, invocation=ME)
    assert event_of(memory).details.drm_json is None
    await handlers.compose(for_encoder(event_id=OTHER), invocation=ME)
    with pytest.raises(Refused):
        await handlers.set_drm(OTHER, "{}", invocation=ME)


async def test_a_film_in_the_clear_shows_no_protected_event(memory: Memory, handlers: CompositionHandlers) -> None:
    """At once, later by a change, by a clone, and at its time: it may be protected since."""
    drm = EventChanges({"vod_drm": True})
    await handlers.compose(film(live_stream_start=LATER), invocation=ME)
    await handlers.compose(film(event_id=OTHER, playlist=playlist(item(EVENT))), invocation=ME)
    await memory.given(AddOrUpdateEvent(SOURCE, {"vod_drm": True}))
    before = len(memory.topics)
    with pytest.raises(Refused, match="item 1 shows an Event with vodDrm"):
        await handlers.compose(film(event_id=None), invocation=ME)
    with pytest.raises(Refused, match="item 1"):
        await handlers.replace(OTHER, CompositionKind.STANDARD, changes={"items": PLAYLIST.items}, invocation=ME)
    with pytest.raises(Refused, match="item 1"):
        await handlers.clone(EVENT, OTHER, invocation=ME)
    with pytest.raises(Refused, match="item 1"):
        await handlers.generate_on_schedule(EVENT, LATER, invocation=ME)
    assert len(memory.topics) == before
    await handlers.compose(film(event_id=None, changes=drm), invocation=ME)
    await memory.given(AddOrUpdateEvent(EVENT, {"vod_drm": True}))
    await handlers.generate_on_schedule(EVENT, LATER, invocation=ME)
    assert (await stored(memory)).state is CompositionState.GENERATING

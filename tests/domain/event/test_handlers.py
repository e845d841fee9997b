"""Event handlers with in-memory adapters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from domain.event import events as facts
from domain.event.aggregate import MediaEvent
from domain.event.changes import EventChanges, PatchStep, TagName
from domain.event.commands import AddOrUpdateEvent, flow_task
from domain.event.handlers import EventHandlers
from domain.event.values import EventState, Mp4State, Trigger
from domain.kernel.cause import Cause
from domain.kernel.errors import InUse, Malformed, NotFound, PreconditionFailed, Refused
from domain.kernel.idempotency import IdempotencyKey, IdempotencyKeyUsed
from domain.kernel.ports import Invocation
from domain.record.configured_record import SentConfiguration
from domain.record.kinds.channel import Channel
from domain.record.kinds.event_type import EventType
from domain.record.kinds.room import Room
from domain.record.kinds.tag import Tag
from domain.record.record import RegisterRecord
from tests.domain.memory import Memory
from tests.domain.scenario import fact

KEY, HALL, SKI, NEWS, FREE = (UUID(int=number) for number in range(1, 6))
ME = Invocation.by("me")
STREAMING = (EventState.LIVE_UNPUBLISHED, EventState.LIVE_PUBLISHED, EventState.LIVE_STARTING)


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def handlers(memory: Memory) -> EventHandlers:
    return EventHandlers(memory.executor, memory.records, events=memory.events, notes=memory.notes)


def event(**values: Any) -> AddOrUpdateEvent:
    return AddOrUpdateEvent(KEY, values)


def tag(key: UUID, name: str) -> RegisterRecord:
    return RegisterRecord(key, Tag, {"name": name})


def room(key: UUID) -> RegisterRecord:
    return RegisterRecord(key, Room, {"name": "Hall"})


def setting(*tags: TagName, **values: Any) -> PatchStep:
    return PatchStep(EventChanges(values, tags or None))


def expecting(*tags: TagName, **values: Any) -> PatchStep:
    return PatchStep(EventChanges(values, tags or None), is_test=True)


class Counting:
    """Counts look-ups."""

    def __init__(self, memory: Memory) -> None:
        self._records = memory.records
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self._records, name)


class TestAdding:
    async def test_without_a_key_it_is_a_new_event(self, memory: Memory, handlers: EventHandlers) -> None:
        first = await handlers.add_or_update_event(None, EventChanges({"title": "a"}), invocation=ME)
        second = await handlers.add_or_update_event(None, EventChanges({"title": "b"}), invocation=ME)
        assert first.aggregate.id != second.aggregate.id
        assert memory.happened == [fact(facts.EventRegistered, title="a"), fact(facts.EventRegistered, title="b")]

    async def test_with_a_key_it_is_new_or_changed(self, memory: Memory, handlers: EventHandlers) -> None:
        for title in ("a", "b"):
            await handlers.add_or_update_event(KEY, EventChanges({"title": title}), invocation=ME)
        assert memory.topics == ["event.registered", "event.described"]

    async def test_a_state_is_set_as_metadata(self, memory: Memory, handlers: EventHandlers) -> None:
        changes = EventChanges({"state": EventState.LIVE_PUBLISHED})
        outcome = await handlers.add_or_update_event(KEY, changes, invocation=ME)
        assert outcome.aggregate.details.state is EventState.LIVE_PUBLISHED
        assert memory.happened[-1].facts["trigger"] is Trigger.METADATA

    async def test_the_outcome_has_the_position_of_the_append(self, memory: Memory, handlers: EventHandlers) -> None:
        changes = EventChanges({"title": "a"})
        assert (await handlers.add_or_update_event(KEY, changes, invocation=ME)).position == 1
        assert (await handlers.add_or_update_event(KEY, changes, invocation=ME)).position is None

    async def test_the_aggregate_of_an_outcome_does_not_change_later(self, handlers: EventHandlers) -> None:
        first = await handlers.add_or_update_event(KEY, EventChanges({"title": "a"}), invocation=ME)
        await handlers.add_or_update_event(KEY, EventChanges({"title": "b"}), invocation=ME)
        assert first.aggregate.details.title == "a"


class TestLinks:
    async def test_a_link_needs_an_existing_record(self, memory: Memory, handlers: EventHandlers) -> None:
        changes = EventChanges({"room_id": HALL, "category_ids": (NEWS,), "title": "a"})
        with pytest.raises(Malformed) as refused:
            await handlers.add_or_update_event(KEY, changes, invocation=ME)
        assert {(error.field, error.message) for error in refused.value.errors} == {
            ("roomId", "there is no such room"),
            ("categoryId", "there is no such category"),
        }
        assert memory.happened == []

    async def test_links_are_looked_up_again_after_a_concurrent_deletion(self, memory: Memory, handlers: EventHandlers) -> None:
        await memory.given(room(HALL))
        memory.meanwhile(Room.delete.on(HALL))
        with pytest.raises(Malformed):
            await handlers.add_or_update_event(KEY, EventChanges({"room_id": HALL}), invocation=ME)
        assert memory.topics == ["room.deleted"]

    async def test_a_linked_record_is_not_deleted(self, memory: Memory, handlers: EventHandlers) -> None:
        await memory.given(room(HALL), event(room_id=HALL))
        with pytest.raises(InUse) as refused:
            await memory.executor.execute(Room.delete.on(HALL), invocation=ME)
        assert list(refused.value.users) == [f"event {KEY}"]

    async def test_a_type_is_set_and_removed(self, memory: Memory, handlers: EventHandlers) -> None:
        await memory.given(RegisterRecord(NEWS, EventType, {"name": "News"}), event())
        assert (await handlers.set_event_type(KEY, NEWS, invocation=ME)).aggregate.details.event_type_id == NEWS
        assert (await handlers.set_event_type(KEY, None, invocation=ME)).aggregate.details.event_type_id is None
        with pytest.raises(Malformed, match="eventTypeId: there is no such event type"):
            await handlers.set_event_type(KEY, HALL, invocation=ME)


class TestTags:
    async def test_a_known_name_is_reused_and_an_unknown_name_adds_a_tag(self, memory: Memory, handlers: EventHandlers) -> None:
        await memory.given(tag(SKI, "ski"))
        changes = EventChanges({}, [TagName("ski", FREE), TagName("curling", NEWS), TagName("ski")])
        outcome = await handlers.add_or_update_event(KEY, changes, invocation=ME)
        assert outcome.aggregate.details.tag_ids == (SKI, NEWS)
        assert memory.topics == ["tag.registered", "event.registered"]

    async def test_the_id_of_another_tag_is_not_used(self, memory: Memory, handlers: EventHandlers) -> None:
        await memory.given(tag(SKI, "ski"))
        tags = [TagName("curling", SKI), TagName("luge", FREE), TagName("bob", FREE)]
        outcome = await handlers.add_or_update_event(KEY, EventChanges({}, tags), invocation=ME)
        curling, luge, bob = outcome.aggregate.details.tag_ids
        assert (bob, len({SKI, curling, luge, bob})) == (FREE, 4)

    async def test_the_first_id_of_a_name_counts(self, handlers: EventHandlers) -> None:
        changes = EventChanges({}, [TagName("luge", FREE), TagName("luge", NEWS)])
        outcome = await handlers.add_or_update_event(KEY, changes, invocation=ME)
        assert outcome.aggregate.details.tag_ids == (FREE,)

    async def test_a_concurrently_added_tag_is_reused(self, memory: Memory, handlers: EventHandlers) -> None:
        memory.meanwhile(tag(SKI, "ski"))
        outcome = await handlers.add_or_update_event(KEY, EventChanges({}, [TagName("ski")]), invocation=ME)
        assert outcome.aggregate.details.tag_ids == (SKI,)
        assert memory.topics == ["tag.registered", "event.registered"]

    async def test_a_refused_change_adds_no_tag(self, memory: Memory, handlers: EventHandlers) -> None:
        with pytest.raises(NotFound):
            await handlers.replace_tags(KEY, [TagName("ski")], invocation=ME)
        assert memory.happened == []

    async def test_all_tags_are_replaced(self, memory: Memory, handlers: EventHandlers) -> None:
        await memory.given(tag(SKI, "ski"), event(tag_ids=(SKI,)))
        outcome = await handlers.replace_tags(KEY, [TagName("luge", FREE)], invocation=ME)
        assert outcome.aggregate.details.tag_ids == (FREE,)
        assert (await handlers.replace_tags(KEY, [], invocation=ME)).aggregate.details.tag_ids == ()


class TestPatching:
    async def test_steps_apply_in_order_and_all_or_none(self, memory: Memory, handlers: EventHandlers) -> None:
        await memory.given(event(title="a"))
        patch = [setting(title="b"), expecting(title="b"), setting(title="c")]
        assert (await handlers.patch_event(KEY, patch, invocation=ME)).aggregate.details.title == "c"
        with pytest.raises(Refused):
            await handlers.patch_event(KEY, [setting(title="d"), expecting(title="c")], invocation=ME)
        assert memory.topics == ["event.described"]

    async def test_each_look_up_is_made_once_for_all_steps(self, memory: Memory) -> None:
        await memory.given(room(HALL), tag(SKI, "ski"), event())
        counting = Counting(memory)
        handlers = EventHandlers(memory.executor, counting, events=memory.events, notes=memory.notes)
        patch = [setting(room_id=HALL), setting(TagName("ski"), TagName("luge", FREE)), setting(room_id=None)] * 100
        await handlers.patch_event(KEY, patch, invocation=ME)
        assert sorted(counting.calls) == ["by_ids", "look_up"]

    async def test_a_test_compares_tags_by_name(self, memory: Memory, handlers: EventHandlers) -> None:
        await memory.given(tag(SKI, "ski"), event(tag_ids=(SKI,)))
        same = [expecting(TagName("ski")), setting(TagName("luge", FREE)), expecting(TagName("luge"))]
        assert (await handlers.patch_event(KEY, same, invocation=ME)).aggregate.details.tag_ids == (FREE,)
        for names in (["ski"], ["nobody"], ["luge", "ski"]):
            with pytest.raises(Refused):
                await handlers.patch_event(KEY, [expecting(*map(TagName, names))], invocation=ME)

    async def test_a_new_tag_is_added_once_for_all_steps(self, memory: Memory, handlers: EventHandlers) -> None:
        await memory.given(event())
        a, b = TagName("a", FREE), TagName("b", NEWS)
        patch = [setting(a), expecting(a), setting(b, TagName("a"))]
        outcome = await handlers.patch_event(KEY, patch, invocation=ME)
        assert memory.topics == ["tag.registered", "tag.registered", "event.tagged"]
        assert outcome.aggregate.details.tag_ids == (NEWS, FREE)

    async def test_the_values_of_a_test_need_not_exist(self, memory: Memory, handlers: EventHandlers) -> None:
        await memory.given(event())
        with pytest.raises(Refused):
            await handlers.patch_event(KEY, [expecting(room_id=HALL)], invocation=ME)

    async def test_the_latest_event_with_a_reference_is_patched(self, memory: Memory, handlers: EventHandlers) -> None:
        await memory.given(event(ref_id="r"))
        outcome = await handlers.patch_event_by_reference("r", [setting(title="a")], invocation=ME)
        assert outcome.aggregate.key == str(KEY)

    @pytest.mark.parametrize(
        ("patch", "error"), [([setting(title="a")], NotFound), ([setting(room_id=HALL)], Malformed)], ids=["sound", "wrong"]
    )
    async def test_a_wrong_patch_is_reported_before_a_missing_event(
        self, handlers: EventHandlers, patch: Sequence[PatchStep], error: type[Exception]
    ) -> None:
        with pytest.raises(error):
            await handlers.patch_event_by_reference("nobody", patch, invocation=ME)

    async def test_if_match_refers_to_the_event(self, memory: Memory, handlers: EventHandlers) -> None:
        await memory.given(event(title="a"))
        patch = [setting(TagName("ski"))]
        with pytest.raises(PreconditionFailed):
            await handlers.patch_event(KEY, patch, invocation=Invocation(Cause.by("me"), frozenset({7})))
        await handlers.patch_event(KEY, patch, invocation=Invocation(Cause.by("me"), frozenset({1})))
        assert memory.topics == ["tag.registered", "event.tagged"]


class TestWhileStreaming:
    MESSAGE = "ChannelId was not changed: it cannot be changed while the Event streams or is being provisioned"

    async def given(self, memory: Memory, state: EventState) -> None:
        sent = SentConfiguration("{}", {}, {})
        channels = [RegisterRecord(key, Channel, {"name": "c", "configuration_json": sent}) for key in (HALL, FREE)]
        await memory.given(*channels, AddOrUpdateEvent(KEY, {"channel_id": HALL}, state=state))

    @pytest.mark.parametrize("state", STREAMING)
    async def test_an_unchanged_channel_is_logged(self, memory: Memory, handlers: EventHandlers, state: EventState) -> None:
        await self.given(memory, state)
        changes = EventChanges({"channel_id": FREE, "title": "Final"})
        outcome = await handlers.add_or_update_event(KEY, changes, invocation=ME)
        assert (outcome.aggregate.details.channel_id, outcome.aggregate.details.title) == (HALL, "Final")
        assert memory.notes.written == [(str(KEY), self.MESSAGE)]

    async def test_an_unchanged_channel_is_logged_if_nothing_else_changes(self, memory: Memory, handlers: EventHandlers) -> None:
        await self.given(memory, EventState.LIVE_PUBLISHED)
        await handlers.patch_event(KEY, [setting(channel_id=FREE)], invocation=ME)
        assert (memory.happened, memory.notes.written) == ([], [(str(KEY), self.MESSAGE)])

    async def test_only_the_command_with_the_channel_logs_it(self, memory: Memory, handlers: EventHandlers) -> None:
        await self.given(memory, EventState.LIVE_PUBLISHED)
        await handlers.patch_event(KEY, [setting(channel_id=FREE)], invocation=ME)
        await handlers.patch_event(KEY, [setting(title="a")], invocation=ME)
        assert len(memory.notes.written) == 1

    @pytest.mark.parametrize("state", [EventState.PRE_LIVE, EventState.STOPPED])
    async def test_without_a_stream_the_channel_changes(self, memory: Memory, handlers: EventHandlers, state: EventState) -> None:
        await self.given(memory, state)
        outcome = await handlers.patch_event(KEY, [setting(channel_id=FREE)], invocation=ME)
        assert (outcome.aggregate.details.channel_id, memory.notes.written) == (FREE, [])

    async def test_a_refused_command_logs_nothing(self, memory: Memory, handlers: EventHandlers) -> None:
        await self.given(memory, EventState.LIVE_PUBLISHED)
        with pytest.raises(Refused):
            await handlers.patch_event(KEY, [setting(channel_id=FREE), expecting(title="other")], invocation=ME)
        other_version = Invocation(Cause.by("me"), frozenset({99}))
        with pytest.raises(PreconditionFailed):
            await handlers.patch_event(KEY, [setting(channel_id=FREE)], invocation=other_version)
        assert memory.notes.written == []

    async def test_the_same_channel_or_no_channel_in_a_change_logs_nothing(self, memory: Memory, handlers: EventHandlers) -> None:
        await self.given(memory, EventState.LIVE_PUBLISHED)
        for values in ({"channel_id": HALL, "title": "a"}, {"title": "b"}):
            await handlers.add_or_update_event(KEY, EventChanges(values), invocation=ME)
        there_and_back = [setting(channel_id=FREE), setting(channel_id=HALL)]
        await handlers.patch_event(KEY, there_and_back, invocation=ME)
        assert memory.notes.written == []

    async def test_a_channel_may_change_in_the_command_that_starts_the_stream(
        self, memory: Memory, handlers: EventHandlers
    ) -> None:
        await self.given(memory, EventState.STOPPED)
        changes = EventChanges({"channel_id": FREE, "state": EventState.LIVE_PUBLISHED})
        outcome = await handlers.add_or_update_event(KEY, changes, invocation=ME)
        assert (outcome.aggregate.details.channel_id, memory.notes.written) == (FREE, [])


class TestOtherUseCases:
    async def test_a_flow_task_is_set_on_a_new_or_an_existing_event(self, memory: Memory, handlers: EventHandlers) -> None:
        await memory.given(event())
        task: dict[str, Any] = {"state": EventState.VOD_PRIVATE, "mp4_state": Mp4State.AVAILABLE}
        old, new = [await memory.executor.execute(flow_task(key, "{}", **task), invocation=ME) for key in (KEY, None)]
        assert old.aggregate.key == str(KEY) != new.aggregate.key
        assert memory.topics == [
            "event.flow_task_changed",
            "event.state_changed",
            "event.mp4_state_changed",
            "event.registered",
            "event.state_changed",
            "event.mp4_state_changed",
        ]
        assert {entry.facts["trigger"] for entry in memory.happened if entry.event is facts.StateChanged} == {Trigger.FLOW}

    async def test_an_event_is_restored_although_its_room_is_deleted(self, memory: Memory, handlers: EventHandlers) -> None:
        await memory.given(room(HALL), event(room_id=HALL), MediaEvent.delete.on(KEY), Room.delete.on(HALL))
        restored = await memory.executor.execute(MediaEvent.restore.on(KEY), invocation=ME)
        assert restored.aggregate.details.room_id == HALL


class TestRepeats:
    KEYED = Invocation(Cause.by("me"), idempotency=IdempotencyKey("me", "k", b"mark"))

    async def test_a_repeat_shows_the_event_as_of_the_first_request(self, memory: Memory, handlers: EventHandlers) -> None:
        await memory.given(tag(SKI, "ski"))
        changes = EventChanges({"title": "a"}, [TagName("ski")])
        first = await handlers.add_or_update_event(None, changes, invocation=self.KEYED)
        await memory.given(Tag.amend.on(SKI, {"name": "skiing"}), AddOrUpdateEvent(UUID(first.aggregate.key), {"title": "b"}))
        again = memory.outcome("me", "k")
        assert (again.aggregate.details.title, again.as_of, again.secrets) == ("a", 2, {})
        assert again.aggregate == first.aggregate

    async def test_a_key_is_used_once(self, handlers: EventHandlers) -> None:
        outcome = await handlers.add_or_update_event(None, EventChanges({}), invocation=self.KEYED)
        assert outcome.recorded
        with pytest.raises(IdempotencyKeyUsed):
            await handlers.add_or_update_event(None, EventChanges({}), invocation=self.KEYED)

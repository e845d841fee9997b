"""Starts and forced stops with in-memory adapters: which Event is on the air, and what the log store says about the others."""

from __future__ import annotations

from uuid import UUID

import pytest

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.on_air_handlers import OnAirHandlers
from domain.event.ports import EventRow
from domain.event.values import EventState
from domain.kernel.ports import Invocation
from domain.record.configured_record import SentConfiguration
from domain.record.kinds.channel import Channel
from domain.record.record import RegisterRecord
from tests.domain.memory import Memory, MemoryEvents

MAIN, BARE, FIRST, SECOND = (UUID(int=number) for number in range(1, 5))
ME = Invocation.by("me")
WITH_ENCODER = '{"encoders": [{"name": "enc-1", "type": "ffmpeg"}]}'
LIVE, PUBLISHED, STOPPED = EventState.LIVE_UNPUBLISHED, EventState.LIVE_PUBLISHED, EventState.STOPPED


@pytest.fixture
async def memory() -> Memory:
    memory = Memory()
    for key, text in ((MAIN, WITH_ENCODER), (BARE, "{}")):
        values = {"name": f"channel {key}", "configuration_json": SentConfiguration(text, {}, {})}
        await memory.executor.execute(RegisterRecord(key, Channel, values), invocation=ME)
    for key in (FIRST, SECOND):
        await memory.executor.execute(AddOrUpdateEvent(key, {"title": f"match {key.int}", "channel_id": MAIN}), invocation=ME)
    return memory


@pytest.fixture
def handlers(memory: Memory) -> OnAirHandlers:
    return OnAirHandlers(memory.executor, memory.records, events=memory.events, notes=memory.notes)


def on_air(memory: Memory) -> list[UUID]:
    roots = memory.log.all(MediaEvent.KIND)
    return [UUID(root.key) for root in roots if isinstance(root, MediaEvent) and root.details.on_air_channel_id == MAIN]


async def state_of(memory: Memory, key: UUID) -> EventState:
    row = await memory.events.by_id(key)
    assert row is not None
    return row.details.state


async def test_the_second_event_on_a_channel_is_live_and_waits(memory: Memory, handlers: OnAirHandlers) -> None:
    for key in (FIRST, SECOND):
        await handlers.change_state(key, LIVE, invocation=ME)
    assert on_air(memory) == [FIRST]
    message = (
        f"the encoder was not started: the Event {FIRST} (match 3) is on the air on the channel {MAIN};"
        " it starts when the channel is free"
    )
    assert memory.notes.written == [(str(SECOND), message)]
    assert await state_of(memory, SECOND) is LIVE


async def test_a_channel_that_another_event_takes_first(memory: Memory, handlers: OnAirHandlers) -> None:
    """The other Event takes the channel between the look-up and the append."""

    class Overtaken(MemoryEvents):
        async def on_air(self, channel_id: UUID) -> EventRow | None:
            found = await super().on_air(channel_id)
            if found is None:
                await handlers.change_state(FIRST, LIVE, invocation=ME)
            return found

    late = OnAirHandlers(memory.executor, memory.records, events=Overtaken(memory.log), notes=memory.notes)
    await late.change_state(SECOND, LIVE, invocation=ME)
    assert on_air(memory) == [FIRST]
    assert [subject for subject, _ in memory.notes.written] == [str(SECOND)]
    assert await state_of(memory, SECOND) is LIVE


async def test_a_start_after_a_stop_takes_the_channel(memory: Memory, handlers: OnAirHandlers) -> None:
    await handlers.change_state(FIRST, LIVE, invocation=ME)
    await handlers.change_state(FIRST, STOPPED, invocation=ME)
    await handlers.change_state(SECOND, PUBLISHED, invocation=ME)
    assert (on_air(memory), memory.notes.written) == ([SECOND], [])


async def test_a_repeated_start_writes_no_second_note(memory: Memory, handlers: OnAirHandlers) -> None:
    for key in (FIRST, SECOND, SECOND):
        await handlers.change_state(key, LIVE, invocation=ME)
    assert len(memory.notes.written) == 1


async def test_a_forced_stop_frees_the_channel_of_whichever_event_is_on_the_air(memory: Memory, handlers: OnAirHandlers) -> None:
    await handlers.change_state(FIRST, LIVE, invocation=ME)
    for _ in range(2):
        await handlers.force_stop(SECOND, invocation=ME)
    assert on_air(memory) == []
    assert [await state_of(memory, key) for key in (FIRST, SECOND)] == [LIVE, STOPPED]


async def test_a_forced_stop_of_the_event_that_is_on_the_air(memory: Memory, handlers: OnAirHandlers) -> None:
    await handlers.change_state(FIRST, LIVE, invocation=ME)
    await handlers.force_stop(FIRST, invocation=ME)
    assert (on_air(memory), await state_of(memory, FIRST)) == ([], STOPPED)


async def test_a_channel_without_encoders_is_not_taken(memory: Memory, handlers: OnAirHandlers) -> None:
    await memory.executor.execute(AddOrUpdateEvent(FIRST, {"channel_id": BARE}), invocation=ME)
    await handlers.change_state(FIRST, LIVE, invocation=ME)
    taken = [entry.event for entry in memory.log.entries if isinstance(entry.event, events.ChannelTaken)]
    assert (taken, memory.notes.written) == ([], [])

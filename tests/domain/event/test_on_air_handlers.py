"""Orders for channels with in-memory adapters: who is on the air, and what the others are told."""

from __future__ import annotations

from uuid import UUID

import pytest

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.on_air_handlers import ChannelOrder, OnAirHandlers, OrderKind
from domain.event.values import EventState, Trigger
from domain.kernel.ports import Invocation
from domain.record.configured_record import SentConfiguration
from domain.record.kinds.channel import Channel
from domain.record.record import RegisterRecord
from tests.domain.memory import Memory

MAIN, BARE, FIRST, SECOND = (UUID(int=number) for number in range(1, 5))
ME = Invocation.by("me")
WITH_ENCODER = '{"encoders": [{"name": "enc-1", "type": "ffmpeg"}]}'


@pytest.fixture
async def memory() -> Memory:
    memory = Memory()
    for key, text in ((MAIN, WITH_ENCODER), (BARE, "{}")):
        values = {"name": f"channel {key}", "configuration_json": SentConfiguration(text, {}, {})}
        await memory.executor.execute(RegisterRecord(key, Channel, values), invocation=ME)
    return memory


@pytest.fixture
def handlers(memory: Memory) -> OnAirHandlers:
    return OnAirHandlers(memory.executor, memory.records, events=memory.events, notes=memory.notes)


async def started(memory: Memory, key: UUID, channel_id: UUID = MAIN) -> ChannelOrder:
    """An Event that was started, and its order."""
    add = AddOrUpdateEvent(key, {"title": f"match {key.int}", "channel_id": channel_id})
    await memory.executor.execute(add, invocation=ME)
    return await changed(memory, key, EventState.LIVE_UNPUBLISHED)


async def changed(memory: Memory, key: UUID, state: EventState) -> ChannelOrder:
    outcome = await memory.executor.execute(MediaEvent.change_state.on(key, state, trigger=Trigger.OPERATOR), invocation=ME)
    versions = [entry.event.originator_version for entry in memory.log.entries if isinstance(entry.event, events.StateChanged)]
    assert outcome.position is not None
    return ChannelOrder(kind=OrderKind.TAKE, event_id=key, order=versions[-1])


def on_air(memory: Memory, channel_id: UUID = MAIN) -> list[UUID]:
    roots = memory.log.all(MediaEvent.KIND)
    return [UUID(root.key) for root in roots if isinstance(root, MediaEvent) and root.details.on_air_channel_id == channel_id]


async def test_the_second_event_on_a_channel_is_not_started_and_told_who_is(memory: Memory, handlers: OnAirHandlers) -> None:
    first, second = await started(memory, FIRST), await started(memory, SECOND)
    for order in (first, second, second):
        await handlers.carry_out(MAIN, order, invocation=ME)
    assert on_air(memory) == [FIRST]
    message = f"the encoder was not started: the Event {FIRST} (match 3) is on the air on the channel {MAIN}"
    assert memory.notes.written == [(str(SECOND), message)] * 2
    row = await memory.events.by_id(SECOND)
    assert row is not None
    assert row.details.state is EventState.LIVE_UNPUBLISHED


async def test_its_next_start_takes_a_channel_that_is_free_again(memory: Memory, handlers: OnAirHandlers) -> None:
    first, second = await started(memory, FIRST), await started(memory, SECOND)
    await handlers.carry_out(MAIN, first, invocation=ME)
    await handlers.carry_out(MAIN, second, invocation=ME)
    await changed(memory, FIRST, EventState.STOPPED)
    assert on_air(memory) == []
    await handlers.carry_out(MAIN, await changed(memory, SECOND, EventState.LIVE_PUBLISHED), invocation=ME)
    assert on_air(memory) == [SECOND]


async def test_a_channel_that_is_freed_while_it_is_taken_is_tried_again(memory: Memory, handlers: OnAirHandlers) -> None:
    first, second = await started(memory, FIRST), await started(memory, SECOND)
    await handlers.carry_out(MAIN, first, invocation=ME)
    stopped = False

    class Stopping:
        """The Event that is on the air is stopped between the refusal and the look-up."""

        async def on_air(self, channel_id: UUID) -> None:
            nonlocal stopped
            if not stopped:
                stopped = True
                await changed(memory, FIRST, EventState.STOPPED)

    between = OnAirHandlers(memory.executor, memory.records, events=Stopping(), notes=memory.notes)
    await between.carry_out(MAIN, second, invocation=ME)
    assert (on_air(memory), memory.notes.written) == ([SECOND], [])


async def test_a_forced_stop_frees_the_channel_of_whoever_is_on_the_air(memory: Memory, handlers: OnAirHandlers) -> None:
    await handlers.carry_out(MAIN, await started(memory, FIRST), invocation=ME)
    free = ChannelOrder(kind=OrderKind.FREE, event_id=SECOND, order=2)
    for _ in range(2):
        await handlers.carry_out(MAIN, free, invocation=ME)
    assert on_air(memory) == []
    row = await memory.events.by_id(FIRST)
    assert row is not None
    assert row.details.state is EventState.LIVE_UNPUBLISHED


@pytest.mark.parametrize("channel_id", [BARE, UUID(int=99)], ids=["without encoders", "that is gone"])
async def test_nobody_is_on_the_air_on_a_channel(memory: Memory, handlers: OnAirHandlers, channel_id: UUID) -> None:
    order = await started(memory, FIRST, BARE)
    await handlers.carry_out(channel_id, order, invocation=ME)
    assert on_air(memory, channel_id) == []
    assert memory.notes.written == []

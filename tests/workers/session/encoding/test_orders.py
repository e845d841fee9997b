"""The orders for channels that follow from the log, and their effects, on a real log."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.on_air_handlers import OnAirHandlers
from domain.event.values import EventState, Trigger
from domain.kernel.cause import Cause
from domain.kernel.mapper import EventMapper
from domain.kernel.ports import Invocation
from domain.record.kinds.channel import Channel
from projections.consumers.orders import Orders
from projections.event.queries import EventQueries
from projections.log.reader import read
from projections.log.transactions import writes
from projections.log_store.log_store import Logbook
from projections.record.queries import RecordQueries
from tests.support.feeding import configured, do, event, record
from workers.kernel.order_worker import OrderWorker
from workers.kernel.wakeups import Waker
from workers.session.encoding.policy import CONSUMER, ChannelOrders, EncodingOrders

MAIN, OTHER = UUID(int=101), UUID(int=102)
LIVE, PUBLISHED, STOPPED = EventState.LIVE_UNPUBLISHED, EventState.LIVE_PUBLISHED, EventState.STOPPED


@pytest.fixture
async def inner(inner: Core) -> Core:
    for key in (MAIN, OTHER):
        text = '{"encoders": [{"name": "enc-1", "type": "ffmpeg"}]}'
        await record(inner, Channel, key.int, **configured(f"channel {key.int}", text))
    return inner


async def fed(inner: Core, *, at_once: int = 1000) -> None:
    """Feed the whole log to the handler, as the consumer does."""
    handler = EncodingOrders(inner.streams, mapper=EventMapper(inner.catalogue), wake=lambda: None)
    together = list(writes(await read(inner.database, 0, limit=100_000)))
    for start in range(0, len(together), at_once):
        batch = [entry for write in together[start : start + at_once] for entry in write if entry.topic in handler.topics]
        effects = await handler.prepare(batch) if batch else None
        if effects is not None:
            async with inner.database.connection() as connection, connection.transaction():
                await handler.write(connection, effects)


async def carried_out(inner: Core) -> None:
    notes, records = Logbook(inner.database, inner.clock, machine="here"), RecordQueries(inner.database, RECORDS)
    handlers = OnAirHandlers(inner.executor, records, events=EventQueries(inner.database), notes=notes)
    worker = OrderWorker(Orders(inner.database, CONSUMER), ChannelOrders(handlers).carry_out, waker=Waker())
    while await worker.carry_out():
        pass


async def orders(inner: Core) -> list[tuple[Any, ...]]:
    return await inner.database.rows(
        "SELECT o.target, o.body::json->>'kind', e.originator_id FROM orders o JOIN events e USING (position) ORDER BY position"
    )


async def on_air(inner: Core) -> dict[UUID, UUID]:
    rows = await inner.database.rows("SELECT on_air_channel_id, id FROM event_view WHERE on_air_channel_id IS NOT NULL")
    return dict(rows)


async def go(inner: Core, key: UUID, *states: EventState) -> None:
    for state in states:
        await do(inner, MediaEvent.change_state.on(key, state, trigger=Trigger.OPERATOR))


@pytest.mark.parametrize("at_once", [1, 2, 1000])
async def test_only_an_operator_orders_and_each_batch_gives_the_same(inner: Core, at_once: int) -> None:
    first = await event(inner, 1, channel_id=MAIN)
    await event(inner, 2, channel_id=OTHER, state=LIVE)  # by metadata
    bare = await event(inner, 3)
    await go(inner, first, LIVE, PUBLISHED, EventState.SUSPENDED, STOPPED)
    await go(inner, bare, LIVE)
    await do(inner, AddOrUpdateEvent(first, {"channel_id": OTHER}))
    await do(inner, MediaEvent.force_stop.on(first))
    for _ in range(2):
        await fed(inner, at_once=at_once)
    main, other, stream = Channel.stream(MAIN), Channel.stream(OTHER), MediaEvent.stream(first)
    assert await orders(inner) == [(main, "take", stream), (main, "take", stream), (other, "free", stream)]


async def test_the_orders_of_a_channel_are_those_of_the_log_whoever_they_are_from(inner: Core) -> None:
    first, second = await event(inner, 1, channel_id=MAIN), await event(inner, 2, channel_id=MAIN)
    await go(inner, first, LIVE)
    await do(inner, MediaEvent.force_stop.on(second))
    await go(inner, second, LIVE)
    await fed(inner)
    await carried_out(inner)
    assert await on_air(inner) == {MAIN: second}
    taken = "SELECT originator_id FROM events WHERE topic = 'event.channel_taken' ORDER BY position"
    assert [stream for (stream,) in await inner.database.rows(taken)] == [MediaEvent.stream(first), MediaEvent.stream(second)]


async def test_an_order_passes_on_the_trace_of_the_event_that_it_follows_from(inner: Core) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    first, second = await event(inner, 1, channel_id=MAIN), await event(inner, 2, channel_id=OTHER)
    for key, cause in ((first, Cause.by("test", trace_parent=trace)), (second, Cause.by("test"))):
        await inner.executor.execute(MediaEvent.change_state.on(key, LIVE, trigger=Trigger.OPERATOR), invocation=Invocation(cause))
    await fed(inner)
    await carried_out(inner)
    taken = "SELECT metadata->>'trace_parent' FROM events WHERE topic = 'event.channel_taken' ORDER BY position"
    assert await inner.database.rows(taken) == [(trace,), (None,)]


async def test_a_start_that_was_withdrawn_before_its_order_never_takes_the_channel(inner: Core) -> None:
    keys = [await event(inner, number, channel_id=MAIN) for number in (1, 2, 3, 4)]
    for key in keys:
        await go(inner, key, LIVE)
    await go(inner, keys[0], STOPPED)
    await do(inner, MediaEvent.force_stop.on(keys[1]))
    await do(inner, MediaEvent.delete.on(keys[2]))
    await fed(inner)
    await carried_out(inner)
    assert await on_air(inner) == {}, "the forced stop came after the start of the last one"
    await go(inner, keys[3], PUBLISHED)
    await fed(inner)
    await carried_out(inner)
    assert await on_air(inner) == {MAIN: keys[3]}


async def test_the_loser_is_told_in_the_log_store_and_keeps_its_state(inner: Core) -> None:
    first, second = await event(inner, 1, channel_id=MAIN, title="Final"), await event(inner, 2, channel_id=MAIN)
    await go(inner, first, LIVE)
    await go(inner, second, LIVE)
    await fed(inner)
    await carried_out(inner)
    assert await on_air(inner) == {MAIN: first}
    [(subject, message)] = await inner.database.rows("SELECT subject, message FROM logbook")
    assert subject == str(second)
    assert f"the Event {first} (Final) is on the air" in message
    assert await inner.database.rows("SELECT state FROM event_view WHERE id = %s", (second,)) == [(int(LIVE),)]

"""Outcomes of jobs on a real log: the orders, the notified owners, and the number of notifications."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from api.wiring.core import Core
from domain.job.aggregate import Job
from domain.job.outcome import JobOutcome
from domain.kernel.command import Command
from domain.kernel.errors import Refused
from domain.kernel.mapper import EventMapper
from domain.kernel.ports import Executor, Invocation
from domain.record.kinds.room import Room
from projections.consumers.orders import Orders
from projections.log.reader import read
from projections.log.transactions import writes
from tests.support.feeding import do
from tests.workers.event.outcomes.owned_jobs import OTHER, OUTPUT, ROOM, accept, complete, names, owned, rename
from workers.event.outcomes.policy import CONSUMER, OutcomeOrders, OwnerCommand, OwnerCommands
from workers.kernel.order_worker import OrderWorker
from workers.kernel.wakeups import Waker

MADE = f"completed 17 {OUTPUT.name} {OUTPUT.size}"


def handler(inner: Core, *, most: int = 1_000_000) -> OutcomeOrders:
    return OutcomeOrders(inner.streams, mapper=EventMapper(inner.catalogue), wake=lambda: None, most=most)


async def fed(inner: Core, orders: OutcomeOrders, *, writes_at_once: int = 1000) -> None:
    """Feed the whole log to the handler, as the consumer does."""
    together = list(writes(await read(inner.database, 0, limit=100_000)))
    for start in range(0, len(together), writes_at_once):
        batch = [record for write in together[start : start + writes_at_once] for record in write]
        effects = await orders.prepare(records) if (records := [entry for entry in batch if entry.topic in orders.topics]) else None
        if effects is not None:
            async with inner.database.connection() as connection, connection.transaction():
                await orders.write(connection, effects)


def worker(inner: Core, command: OwnerCommand = rename, *, executor: Executor | None = None, lease: float = 30.0) -> OrderWorker:
    orders = Orders(inner.database, CONSUMER, lease=lease)
    commands = OwnerCommands(executor or inner.executor, owners={Room.KIND: command})
    return OrderWorker(orders, commands.carry_out, waker=Waker())


async def carried_out(inner: Core, order_worker: OrderWorker | None = None) -> int:
    """Carry out everything that is due, and return the number of attempts."""
    attempts, order_worker = 0, order_worker or worker(inner)
    while taken := await order_worker.carry_out():
        attempts += taken
    return attempts


async def pending_orders(inner: Core) -> list[tuple[Any, ...]]:
    return await inner.database.rows("SELECT target, attempts, error FROM orders ORDER BY position, target")


async def make_due(inner: Core) -> None:
    await inner.database.execute("UPDATE orders SET due_at = clock_timestamp()")


class Recorded:
    """An executor that counts, and that can fail after the command was executed, like a killed process."""

    def __init__(self, inner: Core, *, killed: int = 0) -> None:
        self._inner = inner
        self._killed = killed
        self.executed: list[tuple[Any, Invocation]] = []

    async def execute(self, wanted: Any, *, invocation: Invocation) -> Any:
        outcome = await self._inner.executor.execute(wanted, invocation=invocation)
        self.executed.append((wanted, invocation))
        if len(self.executed) <= self._killed:
            raise psycopg.OperationalError("the connection was lost")
        return outcome


async def test_an_owner_and_its_job_are_one_append_and_the_owner_is_told_once(inner: Core) -> None:
    await owned(inner, 17)
    ids = await inner.database.rows(
        "SELECT DISTINCT metadata->>'command_id' FROM events WHERE originator_id IN ('job:17', %s)", (Room.stream(ROOM),)
    )
    assert len(ids) == 1
    await complete(inner, 17)
    await fed(inner, handler(inner))
    executor = Recorded(inner)
    assert await carried_out(inner, worker(inner, executor=executor)) == 1
    assert await names(inner) == ["requested", MADE]
    assert await pending_orders(inner) == []
    [(_, invocation)] = executor.executed
    [(event_id,)] = await inner.database.rows("SELECT event_id FROM events WHERE topic = 'job.completed'")
    assert (invocation.cause.actor, invocation.cause.correlation_id, invocation.cause.causation_id) == (
        "system",
        "transaction 17",
        event_id,
    )


@pytest.mark.parametrize("most", [1_000_000, 100])
@pytest.mark.parametrize("at_once", [1, 2, 1000])
async def test_any_batches_of_the_log_give_the_same_orders(inner: Core, at_once: int, most: int) -> None:
    await owned(inner, 17)
    await accept(inner, 18)
    await complete(inner, 17)
    await complete(inner, 18)
    await owned(inner, 19, OTHER)
    await do(inner, Job.break_off.on(19))
    for _ in range(3):  # a page that is read again changes nothing
        await fed(inner, handler(inner, most=most), writes_at_once=at_once)
    rows = await inner.database.rows(
        "SELECT o.target, e.originator_id, e.topic FROM orders o JOIN events e USING (position) ORDER BY position"
    )
    assert rows == [(Room.stream(ROOM), "job:17", "job.completed"), (Room.stream(OTHER), "job:19", "job.broken")]


async def test_the_outcomes_of_one_owner_come_in_the_order_of_the_log(inner: Core) -> None:
    await owned(inner, 17)
    await do(inner, Job.break_off.on(17))
    await accept(inner, 18, owner=ROOM, rerun_of=17)
    await complete(inner, 18)
    await fed(inner, handler(inner))
    assert [row[1] for row in await pending_orders(inner)] == [0, 0, 0]
    assert await worker(inner).carry_out() == 1, "only the first of an owner is due"
    await carried_out(inner)
    assert await names(inner) == ["requested", "broken 17", "rerun 18", f"completed 18 {OUTPUT.name} 7"]


async def test_an_order_of_a_killed_worker_has_one_effect(inner: Core) -> None:
    await owned(inner, 17)
    await complete(inner, 17)
    await fed(inner, handler(inner))
    orders = Orders(inner.database, CONSUMER, lease=0.0)
    [dead] = await orders.take()
    await do(inner, rename(str(ROOM), JobOutcome.model_validate_json(dead.body)))
    executor = Recorded(inner)
    assert await worker(inner, executor=executor).carry_out() == 1
    assert len(executor.executed) == 1
    assert await names(inner) == ["requested", MADE]
    assert await pending_orders(inner) == []


async def test_the_outcome_of_an_earlier_attempt_is_ignored(inner: Core) -> None:
    await owned(inner, 17)
    await complete(inner, 17)
    await fed(inner, handler(inner))
    orders = Orders(inner.database, CONSUMER, lease=0.0)
    [frozen], [present] = await orders.take(), await orders.take()
    await orders.done(frozen)
    await orders.retry(frozen, seconds=1000, error="late")
    assert await pending_orders(inner) == [(Room.stream(ROOM), 2, None)]
    await orders.done(present)
    assert await pending_orders(inner) == []


async def test_what_fails_is_tried_again_while_other_owners_go_on(inner: Core) -> None:
    await owned(inner, 17)
    await owned(inner, 18, OTHER)
    await complete(inner, 17)
    await complete(inner, 18)
    await fed(inner, handler(inner))
    down = True

    def command(key: str, outcome: JobOutcome) -> Command[Any]:
        if down and UUID(key) == ROOM:
            raise Refused("not now")
        return rename(key, outcome)

    order_worker = worker(inner, command)
    await carried_out(inner, order_worker)
    assert await pending_orders(inner) == [(Room.stream(ROOM), 1, "Refused: not now")]
    assert await names(inner, OTHER) == ["requested", f"completed 18 {OUTPUT.name} 7"]
    down = False
    await make_due(inner)
    await carried_out(inner, order_worker)
    assert (await pending_orders(inner), await names(inner)) == ([], ["requested", MADE])


async def test_a_command_whose_answer_was_lost_has_one_effect(inner: Core) -> None:
    await owned(inner, 17)
    await complete(inner, 17)
    await fed(inner, handler(inner))
    order_worker = worker(inner, executor=Recorded(inner, killed=1))
    await carried_out(inner, order_worker)
    assert [attempts for _, attempts, _ in await pending_orders(inner)] == [1]
    await make_due(inner)
    await carried_out(inner, order_worker)
    assert (await pending_orders(inner), await names(inner)) == ([], ["requested", MADE])


async def test_an_owner_that_is_gone_is_not_told(inner: Core) -> None:
    await owned(inner, 17)
    await complete(inner, 17)
    await do(inner, Room.delete.on(ROOM))
    await fed(inner, handler(inner))
    assert await carried_out(inner) == 1
    assert await pending_orders(inner) == []


async def test_an_order_for_an_unknown_kind_waits_for_who_knows_it(inner: Core) -> None:
    await owned(inner, 17)
    await complete(inner, 17)
    await fed(inner, handler(inner))
    nobody = OwnerCommands(inner.executor, owners={})
    await OrderWorker(Orders(inner.database, CONSUMER), nobody.carry_out, waker=Waker()).carry_out()
    assert [attempts for _, attempts, _ in await pending_orders(inner)] == [1]
    await make_due(inner)
    await carried_out(inner)
    assert await names(inner) == ["requested", MADE]

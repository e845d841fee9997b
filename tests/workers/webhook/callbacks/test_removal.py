"""The removal of callbacks that no job names any more, concurrent with jobs and deliveries."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.job.aggregate import Job
from domain.kernel.errors import NotFound
from domain.kernel.ports import Invocation, Plan
from domain.webhook.callback import RETENTION, Callback
from projections.log.reader import head
from projections.webhook.keys import DeliverySource
from projections.webhook.unused_callbacks import AT_ONCE
from tests.api.asking import topics
from tests.api.media.webhook.callbacks_given import add_callback, callbacks
from tests.support.clock import HandClock
from tests.support.feeding import do
from tests.workers.webhook.callbacks.consuming import consuming
from tests.workers.webhook.callbacks.jobs_given import accept
from tests.workers.webhook.sender.sending import Receiver, Sending
from workers.webhook.callbacks.removal import CONSUMER, CallbackRemoval

URL = "https://hooks.test/job"


def removal(inner: Core) -> CallbackRemoval:
    return CallbackRemoval(inner.database, inner.executor, clock=inner.clock)


async def read_all(inner: Core) -> None:
    """Let the fan-out read the whole log."""
    await inner.database.execute(
        "INSERT INTO consumer_shards (consumer, shard, position) VALUES (%(consumer)s, 0, %(position)s)"
        " ON CONFLICT (consumer, shard) DO UPDATE SET position = excluded.position",
        {"consumer": CONSUMER, "position": await head(inner.database)},
    )


async def verbs(inner: Core, callback: str) -> list[str]:
    return [topic.removeprefix("callback.") for topic in await topics(inner, f"callback:{callback}")]


async def test_a_callback_goes_when_no_job_has_named_it_for_thirty_days(inner: Core, clock: HandClock) -> None:
    old, young = await add_callback(inner, URL + "/old"), await add_callback(inner, URL + "/young")
    clock.now += RETENTION
    await add_callback(inner, URL + "/young")
    await read_all(inner)
    assert await removal(inner).remove() == 0
    clock.forward(days=1)
    assert await removal(inner).remove() == 1
    assert (await verbs(inner, old), await verbs(inner, young)) == (["registered", "deleted"], ["registered", "amended"])
    assert await inner.database.rows("SELECT id FROM record_view WHERE kind = 'callback'") == [(young,)]
    assert await inner.database.row("SELECT count(*) FROM vault WHERE owner = %s", (f"callback:{old}",)) == (0,)
    assert await removal(inner).remove() == 0


async def test_any_number_is_removed(inner: Core, clock: HandClock) -> None:
    """Callbacks are removed in pages: after each page the fan-out must have read the removals of the previous one."""
    count = AT_ONCE + 20
    for first in range(0, count, 20):
        await asyncio.gather(*(add_callback(inner, f"{URL}/{number}") for number in range(first, first + 20)))
    clock.now += RETENTION + timedelta(days=1)
    async with consuming(inner):
        assert await removal(inner).remove() == count
    assert await removal(inner).remove() == 0


async def test_a_job_that_has_not_ended_keeps_its_callbacks(inner: Core, clock: HandClock) -> None:
    callback = await add_callback(inner, URL)
    await accept(inner, 17, UUID(callback))
    clock.now += 3 * RETENTION
    await read_all(inner)
    assert await removal(inner).remove() == 0
    await do(inner, Job.break_off.on(17))
    await read_all(inner)
    assert await removal(inner).remove() == 1


async def test_it_waits_for_a_fan_out_that_is_behind(inner: Core, clock: HandClock) -> None:
    callback = await add_callback(inner, URL)
    clock.now += 2 * RETENTION
    removing = asyncio.create_task(removal(inner).remove())
    await asyncio.wait([removing], timeout=0.1)
    assert (removing.done(), await verbs(inner, callback)) == (False, ["registered"])
    await read_all(inner)
    assert await removing == 1


async def test_what_is_pending_is_sent_before_its_callback_goes(inner: Core, clock: HandClock, database_url: str) -> None:
    sending = Sending(inner, database_url, clock)
    async with Receiver() as receiver:
        callback = await add_callback(inner, receiver.url)
        sending.put(UUID(callback), (1, "job:17"), source=DeliverySource.CALLBACKS)
        clock.now += 2 * RETENTION
        await read_all(inner)
        assert await removal(inner).remove() == 0
        async with sending.sender():
            await sending.finished(UUID(callback), 1)
        assert len(receiver.got) == 1
    assert await removal(inner).remove() == 1


@pytest.mark.parametrize("resent", [False, True])
async def test_a_callback_named_at_the_moment_of_its_removal_is_there_for_the_job(
    inner: Core, second: Core, clock: HandClock, resent: bool
) -> None:
    """An accepted job has its callback whichever process is first, and so has a delivery that is resent."""
    made = [await add_callback(inner, f"{URL}/{number}") for number in range(40)]
    clock.now += 2 * RETENTION
    await read_all(inner)

    async def name(number: int) -> bool:
        if resent:
            try:
                await do(second, Callback.name.on(UUID(made[number])))
            except NotFound:
                return False
            return True
        addresses = await callbacks(second).of("admin", [("url", f"{URL}/{number}")], content_id="film")

        async def plan() -> Plan:
            return Plan(await callbacks(second).named("admin", {key: url.shown for key, url in addresses.items()}))

        await second.executor.execute(plan, invocation=Invocation.by("system"))
        return True

    removed, *named = await asyncio.gather(removal(inner).remove(), *(name(number) for number in range(40)))
    assert removed <= 40
    for callback, there in zip(made, named, strict=True):
        history = await verbs(inner, callback)
        assert history in (["registered", "amended"], ["registered", "deleted", "restored"], ["registered", "deleted"])
        assert (history[-1] == "deleted") == (not there), "only where the request was told so"

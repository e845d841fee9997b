"""The fan-outs and the removal with very many callbacks: their reads and their memory do not grow with the number."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from uuid import UUID, uuid4

from api.wiring.catalogue import RECORDS, notified
from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.kernel.mapper import EventMapper
from projections.consumers.leases import ShardLeases
from projections.log.log_watcher import LogWatcher
from projections.record.queries import RecordQueries
from projections.webhook.unused_callbacks import FIRST, without_jobs
from tests.api.media.webhook.callbacks_given import add_callback
from tests.projections.rows_read import counting
from tests.support.clock import NOON, HandClock
from tests.support.feeding import as_superuser, do, event
from tests.workers.consumed import log_reader
from tests.workers.webhook.callbacks.jobs_given import complete
from tests.workers.webhook.sender.sending import Receiver, Sending
from workers.kernel.consumer import Consumer
from workers.kernel.worker import Worker
from workers.webhook.callbacks.fanout import CallbackFanout
from workers.webhook.callbacks.removal import CONSUMER, CallbackRemoval
from workers.webhook.fanout import NotificationFanout

MANY, VERY_MANY = 50_000, 400_000
NOTICES = 6
"""The number of notices of a whole job."""


def fill(url: str, callbacks: int) -> None:
    """Add callbacks that were named today, every fourth of them by a job that has not ended.

    The statistics of claims in the database are from when one callback had nearly all of them.
    """
    as_superuser(
        url,
        "ALTER TABLE unique_claims SET (autovacuum_enabled = false)",
        "INSERT INTO unique_claims (scope, value, owner)"
        " SELECT 'job.of_callback.busy', n::text, 'job:' || n FROM generate_series(1, 10000) AS n",
        "ANALYZE unique_claims",
        "INSERT INTO record_view (kind, id, version, deleted, label, parent, date_created, date_modified, document)"
        " SELECT 'callback', md5(n::text)::uuid::text, 1, false, '2031-01-02', 'studio', now(), now(),"
        ' \'{"client":"studio","named_on":"2031-01-02","webhook_url":"https://hooks.test/job/\' || n || \'"}\''
        f" FROM generate_series(1, {callbacks}) AS n",
        "INSERT INTO unique_claims (scope, value, owner)"
        " SELECT 'job.of_callback.' || md5(n::text)::uuid, n::text, 'job:' || n"
        f" FROM generate_series(1, {callbacks}, 4) AS n",
        "ANALYZE record_view",
    )


def consumers(inner: Core, watcher: LogWatcher) -> tuple[Worker, ...]:
    """Return the reader and the consumers of one process."""
    mapper, records = EventMapper(inner.catalogue), RecordQueries(inner.database, RECORDS)
    notifications = NotificationFanout(inner.database, inner.streams, mapper=mapper, notified=notified(), wake=lambda _: None)
    notices = CallbackFanout(inner.streams, records, mapper=mapper, wake=lambda _: None)

    def leases(name: str) -> ShardLeases:
        return ShardLeases(inner.database, name, shards=1, member=uuid4(), host="test")

    reader = log_reader(inner, watcher)
    return (
        reader,
        Consumer(inner.database, leases("webhooks"), feed=reader.feed(notifications.topics), handler=notifications),
        Consumer(inner.database, leases(CONSUMER), feed=reader.feed(notices.topics), handler=notices),
    )


async def test_two_processes_deliver_beside_many_callbacks_and_the_search_reads_the_unused_only(
    inner: Core, database_url: str, clock: HandClock, thorough: bool
) -> None:
    """This is a single test, because adding so many callbacks takes most of the time."""
    await asyncio.to_thread(fill, database_url, VERY_MANY if thorough else MANY)
    await two_processes_deliver(inner, database_url, clock)
    await the_search_reads_unused_callbacks_only(database_url)


async def two_processes_deliver(inner: Core, database_url: str, clock: HandClock) -> None:
    sending = Sending(inner, database_url, clock)
    async with Receiver() as receiver, AsyncExitStack() as running:
        webhook = await sending.webhook(receiver.url + "/event")
        callback = UUID(await add_callback(inner, receiver.url + "/job"))
        first = await event(inner, 1)
        await running.enter_async_context(sending.sender())
        for _ in range(2):
            for consumer in consumers(inner, LogWatcher(inner.database)):
                await consumer.start()
                running.push_async_callback(consumer.stop)
        await sending.finished(webhook, 1)
        for number in (17, 18):
            await do(inner, MediaEvent.force_notification.on(first))
            await complete(inner, number, callback)
            await sending.finished(webhook, number - 15)
            await sending.finished(callback, NOTICES * (number - 16))
        assert await CallbackRemoval(inner.database, inner.executor, clock=clock).remove() == 0
        epochs = await inner.database.rows("SELECT consumer, epoch FROM consumer_shards WHERE consumer <> 'deliveries' ORDER BY 1")
    assert epochs == [(CONSUMER, 1), ("webhooks", 1)], "no share has changed hands"
    assert len(receiver.got) == 3 + 2 * NOTICES


async def the_search_reads_unused_callbacks_only(url: str) -> None:
    as_superuser(
        url,
        "UPDATE record_view SET label = '2030-11-01' WHERE kind = 'callback' AND id IN"
        " (SELECT md5(n::text)::uuid::text FROM generate_series(1, 8) AS n)",
        "VACUUM ANALYZE record_view",
    )
    async with counting(url) as database:
        page = await without_jobs(database, named_before=NOON.date(), after=FIRST)
        assert page is not None
        assert len(page.callbacks) == 6, "two of the eight have a job"
        for table in ("record_view", "unique_claims"):
            scanned, by_index = await database.rows_read(table)
            assert scanned == 0, table
            assert by_index < 1000, table

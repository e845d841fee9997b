"""A database that lost its latest commits, under a Kafka that has them: nothing is skipped, and nothing is sent that is not in the
log. A copied data directory is a restored back-up, and a standby that was promoted without the tail."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from api.wiring.core import Core, core, prepare
from projections.consumers.timeline import begin_epoch, timeline
from projections.log.log_watcher import LogWatcher
from projections.log.reader import read
from tests.contract.feed.notebook import Notebook, consuming
from tests.contract.feed.test_feeds import fetched, relayed, some_writes, taken
from tests.contract.feed.transports import KINDS, Kafka, Log, positions_in, relaying
from tests.projections.log.helpers import rows, until
from tests.support.feeding import event
from workers.adapters.embedded_postgres import EmbeddedPostgres
from workers.adapters.kafka.topics import Topics


@asynccontextmanager
async def running(home: Path) -> AsyncIterator[tuple[str, Core, LogWatcher]]:
    """The product on the server of a home, which is stopped afterwards."""
    server = EmbeddedPostgres(home)
    url = await asyncio.to_thread(server.start)
    try:
        wired = core(url, role=await prepare(url))
        await wired.start()
        watcher = LogWatcher(wired.database)
        await watcher.start()
        try:
            yield url, wired, watcher
        finally:
            await watcher.stop()
            await wired.stop()
    finally:
        await asyncio.to_thread(server.stop)


def has_logged(caplog: pytest.LogCaptureFixture, text: str) -> bool:
    return any(text in record.getMessage() for record in caplog.records)


async def test_a_restored_log_under_a_kafka_that_has_more(
    tmp_path: Path, kafka: str, topics_prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    topics, home, saved = Topics(topics_prefix), tmp_path / "home", tmp_path / "saved"
    async with running(home) as (url, inner, watcher), relaying(inner, watcher, bootstrap=kafka, topics=topics) as name:
        restored_head = await some_writes(inner, 10)
        await until(lambda: relayed(url, name) == restored_head)
    shutil.copytree(home / "postgres", saved, symlinks=True, copy_function=shutil.copy2)
    async with running(home) as (url, inner, watcher), relaying(inner, watcher, bootstrap=kafka, topics=topics) as name:
        lost = await some_writes(inner, 10)
        await until(lambda: relayed(url, name) == lost)
    _put_back(saved, home / "postgres")
    async with running(home) as (url, inner, watcher):
        for number in range(30):
            await event(inner, 100 + number, title="of the new time")
        head = restored_head + 30
        before = await asyncio.to_thread(positions_in, kafka, topics.of("event"))
        with caplog.at_level(logging.ERROR):
            async with relaying(inner, watcher, bootstrap=kafka, topics=topics) as name:
                await until(lambda: has_logged(caplog, f"medialedger restored --since {restored_head}"))
                assert relayed(url, name) == restored_head
        assert await asyncio.to_thread(positions_in, kafka, topics.of("event")) == before, "nothing was sent"
        async with await psycopg.AsyncConnection.connect(url) as owner:
            assert await begin_epoch(owner, since=restored_head, reason="a test") == (2, restored_head)
        async with relaying(inner, watcher, bootstrap=kafka, topics=topics) as name:
            await until(lambda: relayed(url, name) == head)
            transport = Kafka(inner.database, Log(inner.database, watcher), bootstrap=kafka, topics=topics)
            assert await fetched(transport.feed(kinds=KINDS), 0, through=head) == list(range(1, head + 1))
            feed, after, given = transport.feed(kinds=KINDS), 0, dict[int, UUID]()
            async with asyncio.timeout(60):
                while after < head:
                    batch = await feed.fetch(after)
                    given |= {record.position: record.event_id for record in batch.records}
                    after = batch.through
            await feed.close()
        logged = {record.position: record.event_id for record in await read(inner.database, 0, limit=10_000)}
        assert given == logged


def _put_back(saved: Path, data: Path) -> None:
    """Restore the files with owner and modes, as an operator does."""
    owner = data.stat()
    shutil.rmtree(data)
    shutil.copytree(saved, data, symlinks=True)
    for path in (data, *data.rglob("*")):
        shutil.chown(path, owner.st_uid, owner.st_gid)


async def test_a_checkpoint_beyond_the_log_stops_its_consumer_until_an_epoch_begins(
    inner: Core, log_watcher: LogWatcher, effects: str, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    transport = Log(inner.database, log_watcher)
    await event(inner, 1)
    async with consuming(inner, transport, Notebook(), lease=0.5):
        await until(lambda: taken(database_url) == [1])
    rows(database_url, "UPDATE consumer_shards SET position = 1000 RETURNING 1")
    async with consuming(inner, transport, Notebook(), lease=0.5):
        await until(lambda: has_logged(caplog, "its checkpoint is 1000, but the log ends at 1"))
        await event(inner, 2)
        async with await psycopg.AsyncConnection.connect(database_url) as owner:
            assert await begin_epoch(owner, since=1, reason="a test") == (2, 1)
        await until(lambda: taken(database_url) == [1, 2])
    assert (await timeline(inner.database)).origin.epoch == 2


async def test_a_checkpoint_that_goes_back_is_followed(
    inner: Core, log_watcher: LogWatcher, effects: str, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The checkpoint goes back when the database is restored under a running process."""
    transport = Log(inner.database, log_watcher)
    async with consuming(inner, transport, Notebook(), lease=0.5):
        head = await some_writes(inner, 5)
        await until(lambda: len(taken(database_url)) == head)
        rows(database_url, "UPDATE consumer_shards SET position = 2 RETURNING 1")
        await until(lambda: taken(database_url)[head:] == list(range(3, head + 1)))
    assert has_logged(caplog, "its checkpoint has gone back")


@pytest.mark.parametrize("payload", ["1000000", "nonsense", "", "-5", "9" * 400])
async def test_a_forged_notification_is_only_a_reason_to_look(
    inner: Core, log_watcher: LogWatcher, effects: str, database_url: str, payload: str
) -> None:
    transport = Log(inner.database, log_watcher)
    async with consuming(inner, transport, Notebook(), lease=0.5):
        await event(inner, 1)
        await until(lambda: taken(database_url) == [1])
        signals = log_watcher.signals

        def heard() -> bool:
            """Sends it again each time: what is sent before the watcher listens is lost."""
            rows(database_url, "SELECT pg_notify('medialedger_log', %s)", payload)
            return log_watcher.signals > signals

        await until(heard)
        await event(inner, 2)
        await event(inner, 3)
        await until(lambda: taken(database_url) == [1, 2, 3])
    assert rows(database_url, "SELECT position FROM consumer_shards WHERE consumer = 'notebook'") == [(3,)]

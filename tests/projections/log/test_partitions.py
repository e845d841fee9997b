"""The log in partitions, created ahead of need or by the append. Each version of a stream exists once in all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from api.wiring.core import Core, core
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.kernel.errors import ConcurrencyConflict
from projections.audit.queries import AuditQueries, EntryFilter
from projections.event.view import EVENT_VIEW
from projections.log import reader
from projections.log.append import Appender
from projections.log.partitions import Partitions
from projections.log.rebuild import Rebuilder
from projections.log.statement import WriteSet
from tests.projections.log.conftest import SIZE
from tests.projections.log.helpers import event as row
from tests.projections.log.helpers import logged, rows, until, whole, write_of
from tests.projections.log.writers import writers
from tests.support.feeding import as_superuser, do, event, table
from tests.support.postgres import new_database


def partitions(url: str) -> list[tuple[int, int, int]]:
    """First and last position of each, and how many events are in its table."""
    stored_rows = rows(url, "SELECT first_position, last_position FROM log_partitions ORDER BY 1")
    return [(first, last, rows(url, f"SELECT count(*) FROM event_partitions.events_{first}")[0][0]) for first, last in stored_rows]


async def test_partitions_are_made_ahead_of_need(wired: Core, small: str, caplog: pytest.LogCaptureFixture) -> None:
    assert wired.partitions.free == SIZE
    for number in range(20):
        await wired.appender.append(write_of(f"test:{number}"))
        await wired.partitions.make()
        assert SIZE <= wired.partitions.free < 2 * SIZE
    assert partitions(small) == [(1, 7, 7), (8, 14, 7), (15, 21, 6), (22, 28, 0)]
    assert "no partition was created in advance" not in caplog.text
    assert whole(small) == 20


async def test_a_task_makes_partitions_as_the_log_grows(wired: Core, small: str) -> None:
    task = Partitions(wired.database, size=SIZE, every=0.001)
    await task.start()
    await wired.appender.append(WriteSet([row("test:a", version) for version in range(1, 8)]))
    await until(lambda: len(partitions(small)) == 2)
    await task.stop()
    assert partitions(small) == [(1, 7, 7), (8, 14, 0)]


async def test_an_append_makes_a_missing_partition(small: str, caplog: pytest.LogCaptureFixture) -> None:
    """A batch may reach over several partitions; this is logged."""
    appender = core(small, role="medialedger_app").appender
    await appender.start()
    try:
        await appender.append(write_of("test:a"))
        assert "no partition was created in advance" not in caplog.text
        assert await appender.append(WriteSet([row("test:b", version) for version in range(1, 21)])) == 21
    finally:
        await appender.stop()
    assert caplog.text.count("no partition was created in advance") == 1
    assert partitions(small) == [(1, 7, 7), (8, 14, 7), (15, 21, 7)]
    assert whole(small) == 21


async def test_the_first_append_to_a_log_without_partitions_makes_one(scratch: str) -> None:
    appender = Appender(core(scratch, role="medialedger_app").database)
    await appender.start()
    await appender.append(write_of("test:a"))
    await appender.stop()
    assert rows(scratch, "SELECT first_position, last_position FROM log_partitions") == [(1, 100_000_000)]


@pytest.fixture
def scratch(postgres: str, migrated_template: str) -> Iterator[str]:
    """A database of its own, whose log has no partition."""
    with new_database(postgres, "no_partitions", template=migrated_template) as url:
        yield url


async def test_a_version_exists_once_in_all_partitions(wired: Core, small: str) -> None:
    """The first event is in another partition than the second attempt."""
    await wired.appender.append(write_of("test:a"))
    for number in range(2 * SIZE):
        await wired.appender.append(write_of(f"test:{number}"))
    assert len([first for first, _, events in partitions(small) if events]) == 3
    with pytest.raises(ConcurrencyConflict):
        await wired.appender.append(write_of("test:a"))
    assert await wired.appender.append(write_of("test:a", 2)) == 2 * SIZE + 2
    assert whole(small) == 2 * SIZE + 2


async def test_writers_of_several_processes_cross_many_partitions(small: str, tmp_path: Path) -> None:
    """Nobody makes partitions ahead, so the appends do, and a reader behind them sees every position once."""
    as_superuser(small, f"SELECT log_make_partitions({SIZE + 100}, 100)")
    with writers(small, tmp_path, count=4) as running:
        await until(lambda: running.total >= 300 and running.all_wrote, seconds=120)
        reports = await asyncio.to_thread(running.wind_up)
    acknowledged = sum(append.events for each in reports for append in each)
    assert whole(small) == acknowledged
    assert [position for position, _, _ in logged(small)] == [*range(1, acknowledged + 1)]
    (first, *made) = partitions(small)
    assert first == (1, SIZE, SIZE)
    assert [first for first, _, _ in made] == [*range(SIZE + 1, made[-1][1], 100)]
    assert all(events == 100 for _, last, events in made if last <= acknowledged)


async def test_streams_histories_and_past_states_reach_over_partitions(wired: Core, small: str) -> None:
    key = await event(wired, 1, title="first")
    before = datetime.now(UTC)
    for number in range(2, 30):
        await do(wired, AddOrUpdateEvent(key, {"title": f"title {number}"}))
    await wired.partitions.make()
    stream = MediaEvent.stream(key)
    loaded = await wired.streams.load(stream)
    assert isinstance(loaded, MediaEvent)
    assert (loaded.version, loaded.details.title) == (29, "title 29")
    audit = AuditQueries(wired.database.lists, wired.streams, wired.catalogue)
    page = await audit.history("event", str(key))
    assert [entry.version for entry in page.entries] == [*range(1, 30)]
    entries = await audit.entries(EntryFilter(id=str(key), after=5, limit=10, ascending=True))
    assert [entry.position for entry in entries.entries] == [*range(6, 16)]
    past = await audit.past_state("event", str(key), version=9)
    assert past is not None
    assert (past.position, past.root.version) == (9, 9)
    past = await audit.past_state("event", str(key), at=before)
    assert past is not None
    assert past.position == 1
    assert (await wired.streams.as_of([stream], 12))[stream].version == 12
    assert [entry.position for entry in await reader.read(wired.database, 5, limit=10)] == [*range(6, 16)]
    assert len(partitions(small)) == 6


async def test_a_rebuild_folds_streams_over_partitions(wired: Core, small: str) -> None:
    for number in range(1, 6):
        key = await event(wired, number, title="first")
        for version in range(2, 6):
            await do(wired, AddOrUpdateEvent(key, {"title": f"title {version}"}))
    live = await table(wired.database, EVENT_VIEW)
    owner = core(small, role=None).database
    async with owner:
        rebuilt = await Rebuilder(owner, wired.streams, app_role="medialedger_app").rebuild(EVENT_VIEW)
    assert (rebuilt.events, rebuilt.rows) == (25, 5)
    assert await table(wired.database, EVENT_VIEW) == live


async def test_a_partition_is_made_while_somebody_reads_the_log_for_long(wired: Core, small: str) -> None:
    """A dump or a verification holds its lock on the table for hours."""
    with psycopg.connect(small) as reading:
        reading.execute("SELECT count(*) FROM events")
        await wired.appender.append(WriteSet([row("test:a", version) for version in range(1, 8)]))
        await wired.partitions.make()
        assert await wired.appender.append(write_of("test:b")) == 8

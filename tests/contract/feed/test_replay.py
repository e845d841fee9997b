"""Records that were parked are tried again in their order, all of them, and then nothing waits any more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.event.commands import AddOrUpdateEvent
from domain.kernel.ports import Invocation, Plan
from projections.consumers.parked_records import ParkedRecords
from projections.log.log_watcher import LogWatcher
from tests.contract.feed.notebook import Notebook, consuming
from tests.contract.feed.test_feeds import taken
from tests.contract.feed.transports import Log
from tests.projections.log.helpers import rows, until
from tests.support.feeding import as_superuser, event

pytestmark = pytest.mark.usefixtures("effects")
LEASE = 0.4
_PARKED = "SELECT position, attempts, replay FROM parked_records ORDER BY position"


def stream(number: int) -> str:
    return f"event:{UUID(int=number)}"


@pytest.fixture
async def notebook(inner: Core, log_watcher: LogWatcher) -> AsyncIterator[Notebook]:
    new_notebook = Notebook()
    async with consuming(inner, Log(inner.database, log_watcher), new_notebook, lease=LEASE):
        yield new_notebook


async def parked_writes(inner: Core, notebook: Notebook, count: int) -> None:
    notebook.poison = {stream(1)}
    for number in range(count):
        await event(inner, 1, title=f"title {number}")
    await until(lambda: len(rows(inner.database.conninfo, _PARKED)) == count)


async def test_where_the_first_fails_again_the_later_ones_wait(inner: Core, notebook: Notebook, database_url: str) -> None:
    await parked_writes(inner, notebook, 4)
    notebook.poison_at = {2}
    notebook.poison = set()
    await ParkedRecords(inner.database).request_replay("notebook")
    await until(lambda: rows(database_url, _PARKED) == [(2, 2, False), (3, 1, False), (4, 1, False)])
    assert taken(database_url) == [1]
    notebook.poison_at = set()
    await ParkedRecords(inner.database).request_replay("notebook")
    await until(lambda: taken(database_url) == [1, 2, 3, 4])
    assert not rows(database_url, _PARKED)


async def test_a_request_that_comes_while_an_earlier_one_fails_is_kept(inner: Core, notebook: Notebook, database_url: str) -> None:
    """The fault is mended at that moment."""
    await parked_writes(inner, notebook, 3)

    async def mended() -> None:
        notebook.poison = set()
        await ParkedRecords(inner.database).request_replay("notebook")

    notebook.before_it_fails = mended
    await ParkedRecords(inner.database).request_replay("notebook")
    await until(lambda: taken(database_url) == [1, 2, 3])
    assert not rows(database_url, _PARKED)


async def test_what_is_parked_after_the_request_is_tried_too(inner: Core, notebook: Notebook, database_url: str) -> None:
    """Another process writes to the aggregate all the time."""
    await parked_writes(inner, notebook, 2)
    notebook.poison = set()
    await ParkedRecords(inner.database).request_replay("notebook")
    for number in range(20):
        await event(inner, 1, title=f"meanwhile {number}")
    await until(lambda: taken(database_url) == list(range(1, 23)))
    assert not rows(database_url, _PARKED)


async def test_more_records_than_a_page_are_tried_in_one_go(inner: Core, notebook: Notebook, database_url: str) -> None:
    notebook.poison = {stream(number) for number in range(1, 701)}

    async def all_of_them() -> Plan:
        return Plan([AddOrUpdateEvent(UUID(int=number), {}) for number in range(1, 701)])

    await inner.executor.execute(all_of_them, invocation=Invocation.by("system"))
    await event(inner, 7, title="behind")
    await until(lambda: len(rows(database_url, _PARKED)) == 701)
    notebook.poison = set()
    await ParkedRecords(inner.database).request_replay("notebook", stream=stream(7))
    await until(lambda: taken(database_url) == list(range(1, 702)))
    assert {through for (through,) in rows(database_url, "SELECT through FROM test_effects WHERE position <= 700")} == {700}
    assert not rows(database_url, _PARKED)


async def test_large_records_are_read_in_parts(inner: Core, database_url: str) -> None:
    for number in range(5):
        await event(inner, 1, description=f"{number}" * 15_000)
    as_superuser(
        database_url,
        "INSERT INTO parked_records (consumer, position, stream, topic, error, replay) "
        "SELECT 'other', position, originator_id, topic, '', true FROM events",
    )
    parked = ParkedRecords(inner.database)

    async def wanted(after: int, *, limit: int = 100, most: int = 20_000) -> tuple[list[int], bool]:
        records, complete = await parked.to_replay("other", after=after, limit=limit, most=most)
        return [position for position, _, _ in records], complete

    assert [await wanted(after) for after in (0, 3, 4, 5)] == [([1, 2], False), ([4, 5], True), ([5], True), ([], True)]
    assert [await wanted(0, limit=limit, most=200_000) for limit in (3, 5)] == [([1, 2, 3], False), ([1, 2, 3, 4, 5], True)]
    assert await wanted(0, most=1) == ([1], False)


async def test_large_writes_are_tried_again_whole(
    inner: Core, notebook: Notebook, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.kernel.consumer.MOST_BYTES", 1)
    notebook.poison = {stream(1)}

    async def two_events(text: str) -> Plan:
        return Plan([AddOrUpdateEvent(UUID(int=number), {"description": text * 5000}) for number in (1, 2)])

    for text in "abc":
        await inner.executor.execute(partial(two_events, text), invocation=Invocation.by("system"))
    await until(lambda: len(rows(database_url, _PARKED)) == 6)
    notebook.poison = set()
    await ParkedRecords(inner.database).request_replay("notebook")
    await until(lambda: taken(database_url) == [1, 2, 3, 4, 5, 6])
    ends: dict[int, int] = dict(rows(database_url, "SELECT position, through FROM test_effects"))
    assert ends == {1: 2, 2: 2, 3: 4, 4: 4, 5: 6, 6: 6}

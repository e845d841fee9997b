"""Records that were parked are tried again in their order, all of them, and then nothing waits any more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.kernel.ports import Invocation, Plan
from domain.media_event.commands import AddOrUpdateEvent
from projections.consumers.parked import ParkedRecords
from projections.log.log_watcher import LogWatcher
from tests.contract.feed.notebook import Notebook, consuming
from tests.contract.feed.test_feeds import taken
from tests.contract.feed.transports import Log
from tests.projections.feeding import event
from tests.projections.log.helpers import rows, until

pytestmark = pytest.mark.usefixtures("effects")
LEASE = 0.4
_PARKED = "SELECT position, attempts, replay FROM parked_records ORDER BY position"


def stream(number: int) -> str:
    return f"event:{UUID(int=number)}"


@pytest.fixture
async def notebook(inner: Core, log_watcher: LogWatcher) -> AsyncIterator[Notebook]:
    one = Notebook()
    async with consuming(inner, Log(inner.database, log_watcher), one, lease=LEASE):
        yield one


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
    """The fault is mended in that moment."""
    await parked_writes(inner, notebook, 3)

    async def mended() -> None:
        notebook.poison = set()
        await ParkedRecords(inner.database).request_replay("notebook")

    notebook.before_it_fails = mended
    await ParkedRecords(inner.database).request_replay("notebook")
    await until(lambda: taken(database_url) == [1, 2, 3])
    assert not rows(database_url, _PARKED)


async def test_what_is_parked_after_the_request_is_tried_too(inner: Core, notebook: Notebook, database_url: str) -> None:
    """Somebody goes on writing to the aggregate all the time."""
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

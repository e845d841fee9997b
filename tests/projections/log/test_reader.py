"""Following the log, and asking it many things at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from api.wiring.core import Core
from projections.kernel.data_loader import DataLoader
from projections.kernel.database.database import Database
from projections.log.reader import head, read
from projections.log.statement import WriteSet
from tests.projections.log.helpers import event, rows, terminate, until, write_of
from tests.workers.following import followed


def listeners(url: str) -> list[int]:
    return [pid for (pid,) in rows(url, "SELECT pid FROM pg_stat_activity WHERE application_name = 'medialedger listener'")]


async def test_the_log_is_read_in_pages_from_any_position(inner: Core, database_url: str) -> None:
    assert await head(inner.database) == 0
    assert await read(inner.database, 0) == []
    await inner.appender.append(WriteSet([event("test:a", version, state=b'{"n":%d}' % version) for version in range(1, 8)]))
    assert await head(inner.database) == 7
    page = await read(inner.database, 2, limit=3)
    assert [(e.position, e.stream, e.version, e.topic, e.state) for e in page] == [
        (n, "test:a", n, "test.happened", b'{"n":%d}' % n) for n in (3, 4, 5)
    ]
    assert await read(inner.database, 7) == []


async def test_a_reader_sees_every_event_once_also_when_its_listener_dies(inner: Core, database_url: str) -> None:
    seen: list[int] = []

    async def watch() -> None:
        async for page in followed(inner.database, 0, limit=3):
            seen.extend(e.position for e in page)

    watching = asyncio.create_task(watch())
    try:
        for number in range(1, 6):
            await inner.appender.append(write_of(f"test:{number}"))
            await until(lambda expected=number: len(seen) == expected)  # type: ignore[misc]
            terminate(database_url, listeners(database_url))
        await until(lambda: listeners(database_url))
        await inner.appender.append(WriteSet([event("test:many", version) for version in range(1, 11)]))
        await until(lambda: len(seen) == 15)
        assert seen == list(range(1, 16))
    finally:
        watching.cancel()
        await asyncio.wait({watching})
    await until(lambda: not listeners(database_url))


async def asking(ask: DataLoader[int, str], key: int) -> str | None:
    return await ask(key)


class Lanes:
    """A question that is answered when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[int], asyncio.Future[None]]] = []

    async def ask(self, keys: Sequence[int]) -> dict[int, str]:
        now: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.asked.append((list(keys), now))
        await now
        return {key: f"answer {key}" for key in keys if key >= 0}


async def test_reads_of_one_moment_share_a_query_and_later_ones_the_next() -> None:
    lanes = Lanes()
    ask = DataLoader[int, str](lanes.ask, lanes=1)
    first = [asyncio.create_task(asking(ask, key)) for key in (1, 2, 1, -1)]
    await until(lambda: lanes.asked)
    later = [asyncio.create_task(asking(ask, key)) for key in (1, 3)]
    await asyncio.sleep(0)
    lanes.asked[0][1].set_result(None)
    assert [await answer for answer in first] == ["answer 1", "answer 2", "answer 1", None]
    await until(lambda: len(lanes.asked) == 2)
    lanes.asked[1][1].set_result(None)
    assert [await answer for answer in later] == ["answer 1", "answer 3"]
    assert [keys for keys, _ in lanes.asked] == [[1, 2, -1], [1, 3]]


async def test_a_query_that_arrives_when_every_lane_ends_is_run() -> None:
    """Every lane has found nothing more to do, but its task has not ended: the question must not wait for another to come."""
    lanes = Lanes()
    ask = DataLoader[int, str](lanes.ask, lanes=2)
    first = [asyncio.create_task(asking(ask, key)) for key in (1, 2)]
    await until(lambda: len(lanes.asked) == 1)
    first.append(asyncio.create_task(asking(ask, 3)))
    await until(lambda: len(lanes.asked) == 2)
    for _, now in lanes.asked:
        now.set_result(None)  # wakes both lanes in the next round of the loop …
    last = asyncio.create_task(asking(ask, 4))  # … in which this asks too, right behind them
    await until(lambda: len(lanes.asked) == 3)
    lanes.asked[2][1].set_result(None)
    assert [await answer for answer in (*first, last)] == ["answer 1", "answer 2", "answer 3", "answer 4"]


async def test_a_query_that_fails_fails_for_its_callers_only(inner: Core) -> None:
    async def ask(keys: Sequence[int]) -> dict[int, str]:
        if 13 in keys:
            raise ValueError(13)
        return {key: f"answer {key}" for key in keys}

    coalesced = DataLoader[int, str](ask)
    results = await asyncio.gather(coalesced(13), coalesced(1), return_exceptions=True)
    assert [type(each) for each in results] == [ValueError, ValueError]
    assert await coalesced(1) == "answer 1"


async def test_a_notification_names_the_latest_position(inner: Core, database_url: str) -> None:
    database = Database(database_url)
    listener = await database.connect("test")
    await listener.execute("LISTEN medialedger_log")
    await inner.appender.append(write_of("test:a"))
    await inner.appender.append(write_of("test:b"))
    reached = [int(notification.payload) async for notification in listener.notifies(timeout=60, stop_after=1)]
    while reached[-1] < 2:
        reached += [int(notification.payload) async for notification in listener.notifies(timeout=60, stop_after=1)]
    assert reached == sorted(reached)
    assert reached[-1] == 2
    await listener.close()

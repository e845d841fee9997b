"""A connection dies at the worst moment. Whatever happened: a command is acknowledged and in the log once, or refused and not."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from domain.kernel.aggregate import Claim
from domain.kernel.errors import ClaimTaken, ConcurrencyConflict, OutcomeUnknown, Unavailable
from domain.kernel.idempotency import IdempotencyKey, IdempotencyRecord
from projections.kernel.database.database import Database
from projections.log.append import Appender
from projections.log.append_queue import AppendLimits
from projections.log.statement import WriteSet
from tests.projections.log.conftest import Writing
from tests.projections.log.helpers import Wire, appenders, event, log_locked, logged, rows, terminate, until, whole, write_of


def streams(url: str) -> list[str]:
    return [stream for _, stream, _ in logged(url)]


async def warmed(appender: Appender) -> None:
    """Statements are sent as they are the first times and by name later; from here on an append is one question, one answer."""
    for number in range(4):
        await appender.append(write_of(f"warm:{number}"))


@pytest.fixture
async def wired(wire: Wire, database_url: str) -> AsyncIterator[Appender]:
    """An appender behind a wire that can be cut."""
    database = Database(wire.conninfo)
    made = Appender(database, limits=AppendLimits(patience=2.0))
    await made.start()
    await warmed(made)
    yield made
    await made.stop()
    await database.close()


async def test_a_connection_that_dies_at_rest_is_not_noticed(appender: Appender, writing: Writing) -> None:
    await appender.append(write_of("test:a"))
    terminate(writing.url, appenders(writing.url))
    assert await asyncio.gather(*(appender.append(write_of(stream)) for stream in ("test:b", "test:c"))) == [2, 3]
    assert streams(writing.url) == ["test:a", "test:b", "test:c"]


@pytest.mark.parametrize("begun", [b"COPY (SELECT 1) TO STDOUT", b"BEGIN", b"BEGIN; SELECT 1 / 0"])
async def test_a_connection_that_is_out_of_step_is_replaced(appender: Appender, writing: Writing, begun: bytes) -> None:
    """A broken proxy can leave a connection on which the server has begun something that is never ended."""
    await appender.append(write_of("test:a"))
    connection = appender._connection
    assert connection is not None
    await asyncio.to_thread(connection.pgconn.exec_, begun)
    assert await asyncio.gather(*(appender.append(write_of(stream)) for stream in ("test:b", "test:c"))) == [2, 3]
    assert streams(writing.url) == ["test:a", "test:b", "test:c"]


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("times", [1, 2, 3])
async def test_a_connection_that_dies_while_it_waits_for_the_head(
    appender: Appender, writing: Writing, times: int, size: int
) -> None:
    """`times`: also the connections that are to find out what became of it die."""
    async with log_locked(writing.url):
        in_progress = [asyncio.create_task(appender.append(write_of(f"test:{n}"))) for n in range(size)]
        for _ in range(times):
            await until(lambda: appenders(writing.url, waiting=True))
            await asyncio.to_thread(terminate, writing.url, appenders(writing.url, waiting=True))
    assert await asyncio.gather(*in_progress) == list(range(1, size + 1))
    assert streams(writing.url) == [f"test:{n}" for n in range(size)]
    assert await appender.append(write_of("test:after")) == size + 1
    assert whole(writing.url) == size + 1


async def test_a_commit_whose_answer_is_lost_is_found_in_the_log(wired: Appender, wire: Wire, database_url: str) -> None:
    wire.lose_answer()
    results = await asyncio.gather(*(wired.append(write_of(f"test:{n}")) for n in range(5)))
    assert wire.lost.is_set()
    assert results == [5, 6, 7, 8, 9]
    assert streams(database_url)[4:] == [f"test:{n}" for n in range(5)]
    assert await wired.append(write_of("test:after")) == 10
    assert whole(database_url) == 10


async def test_a_commit_whose_answer_never_comes_is_found_in_the_log(wired: Appender, wire: Wire, database_url: str) -> None:
    """The line stays up and says nothing: after `patience` it is taken for dead."""
    wire.lose_answer(silently=True)
    assert await wired.append(write_of("test:a")) == 5
    assert wire.lost.is_set()
    assert await wired.append(write_of("test:b")) == 6
    assert whole(database_url) == 6


@pytest.mark.parametrize("times", [2, 3])
async def test_answers_that_are_lost_repeatedly(wired: Appender, wire: Wire, database_url: str, times: int) -> None:
    """The log refuses one command of the batch, so the others are written by a second statement, whose answers may be lost too."""
    wire.lose_answer(times=times)
    results = await asyncio.gather(
        *(wired.append(write_of(stream)) for stream in ("test:a", "warm:0", "test:b", "test:c")), return_exceptions=True
    )
    assert wire.lost.is_set()
    assert [type(each) for each in results] == [int, ConcurrencyConflict, int, int]
    assert Counter(streams(database_url)) == Counter(["warm:0", "warm:1", "warm:2", "warm:3", "test:a", "test:b", "test:c"])
    there = {stream: position for position, stream, _ in logged(database_url)}
    assert (there["test:a"], there["test:b"], there["test:c"]) == (results[0], results[2], results[3])
    assert whole(database_url) == 7


async def test_claims_and_idempotency_keys_of_a_commit_whose_answer_is_lost_are_stored_once(
    wired: Appender, wire: Wire, database_url: str
) -> None:
    """The repeat would meet its own claim and its own idempotency key: it must not take them for somebody else's."""
    recorded = IdempotencyRecord(IdempotencyKey("playout", "k1", b"f"), ("tag:1",))
    full = WriteSet([event("tag:1"), event("tag:1", 2)], claims=[Claim("tag.name", "football", "tag:1")], idempotency=recorded)
    wire.lose_answer()
    assert await wired.append(full) == 6
    with pytest.raises(ClaimTaken):
        await wired.append(write_of("tag:2", claims=[Claim("tag.name", "football", "tag:2")]))
    assert rows(database_url, "SELECT (SELECT count(*) FROM unique_claims), count(*) FROM idempotency_keys") == [(1, 1)]
    assert whole(database_url) == 6


async def test_a_database_that_is_down_is_unavailable_and_comes_back(wired: Appender, wire: Wire, database_url: str) -> None:
    await wire.cut()
    results = await asyncio.gather(*(wired.append(write_of(f"test:{n}")) for n in range(3)), return_exceptions=True)
    assert [type(each) for each in results] == [OutcomeUnknown] * 3  # they were sent to a connection that seemed to be there
    with pytest.raises(Unavailable) as refused:
        await wired.append(write_of("test:9"))
    assert type(refused.value) is Unavailable
    await wire.mend()
    assert await appended(wired, write_of("test:10")) == 5
    assert streams(database_url)[4:] == ["test:10"]


async def appended(wired: Appender, change: WriteSet) -> int:
    """Append a change like a client that retries when it is asked to come back later."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await wired.append(change)
            except Unavailable:
                await asyncio.sleep(0)


async def test_a_database_that_is_gone_for_a_moment_is_waited_for(
    wired: Appender, wire: Wire, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await wire.cut()
    in_progress = asyncio.create_task(wired.append(write_of("test:a")))
    await until(lambda: "the connection to the log broke" in caplog.text)
    assert not in_progress.done()
    await wire.mend()
    assert await in_progress == 5
    assert whole(database_url) == 5


async def test_queries_are_unavailable_too_and_recover(wire: Wire) -> None:
    database = Database(wire.conninfo, size=2)
    await database.open()
    assert await database.row("SELECT 1") == (1,)
    await wire.cut()
    with pytest.raises(Unavailable):
        await database.row("SELECT 1")
    await wire.mend()
    await until(lambda: not database.availability.lost)
    assert await database.row("SELECT 1") == (1,)
    await database.close()


async def test_a_server_that_cancels_a_batch_has_not_written_it(appender: Appender, writing: Writing) -> None:
    """The server cancels by `statement_timeout` when the head row is locked."""
    async with log_locked(writing.url):
        in_progress = [asyncio.create_task(appender.append(write_of(f"test:{n}"))) for n in range(3)]
        await until(lambda: appenders(writing.url, waiting=True))
        rows(writing.url, "SELECT pg_cancel_backend(pid) FROM unnest(%s::int[]) AS pid", appenders(writing.url))
        results = await asyncio.gather(*in_progress, return_exceptions=True)
    assert [type(each) for each in results] == [Unavailable] * 3
    assert await appender.append(write_of("test:0")) == 1
    assert whole(writing.url) == 1


async def test_with_many_lost_connections_nothing_is_lost_and_nothing_is_written_twice(
    wired: Appender, wire: Wire, database_url: str
) -> None:
    """Backends are shot and answers swallowed at random moments, while commands keep coming, some of them stale."""
    dice, acknowledged, refused = random.Random(7), dict[tuple[str, int], int](), set[tuple[str, int]]()
    over = False

    async def write(lane: int) -> None:
        version = 0
        while not over:
            version += 1
            command = WriteSet([event(f"lane:{lane}", version)] if dice.random() > 0.1 else [event("warm:0", 1)])
            row = command.events[0]
            try:
                acknowledged[row.stream, row.version] = await wired.append(command)
            except ConcurrencyConflict:
                assert row.stream == "warm:0"
                version -= 1
            except Unavailable:
                refused.add((row.stream, row.version))
                version -= 1
                if await asyncio.to_thread(rows, database_url, "SELECT FROM events WHERE event_id = %s", row.event_id):
                    raise AssertionError("refused, and yet in the log") from None

    async def shoot() -> None:
        for _ in range(25):
            reached = len(acknowledged) + dice.randrange(5, 60)
            await until(lambda reached=reached: len(acknowledged) >= reached)  # type: ignore[misc]
            if dice.random() < 0.5:
                wire.lose_answer(times=dice.randrange(1, 3))
                await wire.lost.wait()
            else:
                await asyncio.to_thread(terminate, database_url, await asyncio.to_thread(appenders, database_url))

    lanes = [asyncio.create_task(write(lane)) for lane in range(16)]
    try:
        await shoot()
    finally:
        over = True
        await asyncio.gather(*lanes)
    positions = {(stream, version): position for position, stream, version in logged(database_url) if stream.startswith("lane:")}
    assert positions == acknowledged
    assert whole(database_url) == len(acknowledged) + 4

"""The group commit on a real PostgreSQL: many commands in one statement, each of them all or nothing."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from api.wiring.catalogue import RECORD_VIEW
from domain.kernel.aggregate import Claim
from domain.kernel.errors import ClaimTaken, ConcurrencyConflict, DomainError, Unavailable
from domain.kernel.idempotency import IdempotencyKey, IdempotencyKeyUsed, IdempotencyRecord
from domain.record.kinds.room import Room
from domain.record.record import RegisterRecord
from projections.kernel.database.database import Database
from projections.kernel.schema.view import ViewRow
from projections.log.append import Appender
from projections.log.append_queue import AppendLimits
from projections.log.statement import WriteSet
from tests.projections.log.conftest import Writing
from tests.projections.log.helpers import appenders, event, log_locked, logged, rows, until, whole, write_of
from tests.support.clock import NOON
from tests.support.feeding import as_superuser


async def outcomes(appender: Appender, *appends: WriteSet) -> list[int | BaseException]:
    """All at once, so that they share a statement."""
    return await asyncio.gather(*(appender.append(append) for append in appends), return_exceptions=True)


def keyed(key: str, fingerprint_of: str = "first", *, status: int = 201) -> IdempotencyRecord:
    of = IdempotencyKey("playout", key, b"fingerprint", status, "https://media.example")
    return IdempotencyRecord(of, ("test:a", "test:b"), {"said": fingerprint_of})


def name(value: str, owner: str) -> Claim:
    return Claim("tag.name", value, owner)


async def test_positions_are_dense_and_in_the_order_of_the_commits(appender: Appender, writing: Writing) -> None:
    sizes = [1 + number % 4 for number in range(300)]
    appends = [WriteSet([event(f"test:{n}", version + 1) for version in range(size)]) for n, size in enumerate(sizes)]
    positions = [results for results in await outcomes(appender, *appends) if isinstance(results, int)]
    assert positions == [sum(sizes[: n + 1]) for n in range(300)]
    assert [(stream, version) for _, stream, version in logged(writing.url)] == [
        (row.stream, row.version) for append in appends for row in append.events
    ]
    assert whole(writing.url) == sum(sizes)
    assert len(writing.batches) < 5
    assert max(writing.batches) <= AppendLimits().batch
    assert writing.ends == sorted(writing.ends)
    assert writing.ends[-1] == sum(sizes)


async def test_a_command_larger_than_a_batch_goes_alone(writing: Writing) -> None:
    appender = writing.appender(limits=AppendLimits(batch=3))
    await appender.start()
    large = WriteSet([event("test:large", version) for version in range(1, 11)])
    assert await outcomes(appender, write_of("test:a"), large, write_of("test:b")) == [1, 11, 12]
    await appender.stop()
    assert writing.batches == [1, 10, 1]


async def test_a_batch_ends_before_it_has_too_many_bytes(writing: Writing) -> None:
    """A command that is larger than that is written, in a batch of its own."""
    appender = writing.appender(limits=AppendLimits(batch_bytes=10_000))
    await appender.start()
    sizes = [100, 4_000, 4_000, 4_000, 50_000, 100, 100]
    appends = [WriteSet([event(f"test:{number}", state=bytes(size))]) for number, size in enumerate(sizes)]
    assert await outcomes(appender, *appends) == [1, 2, 3, 4, 5, 6, 7]
    await appender.stop()
    assert writing.batches == [3, 1, 1, 2]


async def test_a_queue_with_too_many_bytes_refuses_more_before_anything_is_changed(writing: Writing) -> None:
    """Commands in progress do not count, and a command that is larger than the queue may be alone in it."""
    appender = writing.appender(limits=AppendLimits(waiting_bytes=10_000))
    await appender.start()
    async with log_locked(writing.url):
        in_progress = asyncio.create_task(appender.append(WriteSet([event("test:0", state=bytes(50_000))])))
        await until(lambda: appenders(writing.url, waiting=True))
        alone = asyncio.create_task(appender.append(WriteSet([event("test:1", state=bytes(50_000))])))
        await asyncio.sleep(0)
        with pytest.raises(Unavailable, match="too many changes"):
            await appender.append(write_of("test:2"))
    assert (await in_progress, await alone) == (1, 2)
    assert await outcomes(appender, *(WriteSet([event(f"test:{n}", state=bytes(3_000))]) for n in range(3, 5))) == [3, 4]
    await appender.stop()
    assert whole(writing.url) == 4


def test_the_rows_of_views_count_too() -> None:
    small, large = write_of("test:a"), write_of("test:a")
    large.rows.append(ViewRow(RECORD_VIEW, (None, 1, "x" * 1000, b"y" * 500), update=False))
    assert large.size == small.size + 1500


async def test_a_stale_command_fails_alone(appender: Appender, writing: Writing) -> None:
    await appender.append(write_of("test:old"))
    results = await outcomes(appender, write_of("test:a"), write_of("test:old"), write_of("test:b"), write_of("test:old", 2))
    assert results[0] == 2
    assert isinstance(results[1], ConcurrencyConflict)
    assert results[1].stream == "test:old"
    assert results[2:] == [3, 4]
    assert writing.batches == [1, 4]
    assert whole(writing.url) == 4


async def test_of_two_commands_on_one_version_the_first_wins(appender: Appender, writing: Writing) -> None:
    results = await outcomes(appender, write_of("test:a"), write_of("test:a"), write_of("test:b"))
    assert (results[0], type(results[1]), results[2]) == (1, ConcurrencyConflict, 2)
    assert whole(writing.url) == 2


async def test_a_refused_command_takes_no_position(appender: Appender, writing: Writing) -> None:
    await appender.append(write_of("test:a"))
    for _ in range(3):
        with pytest.raises(ConcurrencyConflict):
            await appender.append(write_of("test:a"))
    assert await appender.append(write_of("test:b")) == 2
    assert whole(writing.url) == 2


async def test_a_taken_claim_fails_alone(appender: Appender, writing: Writing) -> None:
    await appender.append(write_of("tag:1", claims=[name("football", "tag:1")]))
    wanted = name("football", "tag:2")
    results = await outcomes(
        appender,
        write_of("tag:9"),
        write_of("tag:2", claims=[wanted]),
        write_of("tag:3", claims=[name("tennis", "tag:3")]),
    )
    assert (results[0], type(results[1]), results[2]) == (2, ClaimTaken, 3)
    assert isinstance(results[1], ClaimTaken)
    assert results[1].claims == [wanted]
    assert rows(writing.url, "SELECT value, owner FROM unique_claims ORDER BY 1") == [("football", "tag:1"), ("tennis", "tag:3")]
    assert [stream for _, stream, _ in logged(writing.url)] == ["tag:1", "tag:9", "tag:3"]


async def test_of_two_claims_on_one_value_in_a_batch_the_first_wins(appender: Appender, writing: Writing) -> None:
    claims = [write_of(f"tag:{n}", claims=[name("football", f"tag:{n}")]) for n in range(4)]
    results = await outcomes(appender, *claims)
    assert [type(each) for each in results] == [int, ClaimTaken, ClaimTaken, ClaimTaken]
    assert rows(writing.url, "SELECT owner FROM unique_claims") == [("tag:0",)]


async def test_a_claim_that_is_freed_may_be_taken_in_the_same_batch(appender: Appender, writing: Writing) -> None:
    claim = name("football", "tag:1")
    await appender.append(write_of("tag:1", claims=[claim]))
    results = await outcomes(
        appender,
        write_of("tag:1", 2, releases=[claim]),
        write_of("tag:2", claims=[name("football", "tag:2")]),
        write_of("tag:3"),
    )
    assert results == [2, 3, 4]
    assert (writing.batches, writing.ends) == ([1, 3], [1, 4])
    assert rows(writing.url, "SELECT value, owner FROM unique_claims") == [("football", "tag:2")]


async def test_a_claim_that_comes_before_its_release_is_refused(appender: Appender, writing: Writing) -> None:
    """Otherwise the value would have two owners at a time in the log."""
    claim = name("football", "tag:1")
    await appender.append(write_of("tag:1", claims=[claim]))
    results = await outcomes(
        appender,
        write_of("tag:2", claims=[name("football", "tag:2")]),
        write_of("tag:1", 2, releases=[claim]),
        write_of("tag:3"),
    )
    assert (type(results[0]), results[1:]) == (ClaimTaken, [2, 3])
    assert rows(writing.url, "SELECT value FROM unique_claims") == []


async def test_a_claim_is_released_by_the_command_after_it(appender: Appender, writing: Writing) -> None:
    claim = name("football", "tag:1")
    assert await outcomes(appender, write_of("tag:1", claims=[claim]), write_of("tag:1", 2, releases=[claim])) == [1, 2]
    assert rows(writing.url, "SELECT value FROM unique_claims") == []


async def test_a_value_that_moves_between_claims_of_one_command_stays_claimed(appender: Appender, writing: Writing) -> None:
    """A record renamed to what its companion frees: one command, one statement, both the release and the claim."""
    claim = name("football", "tag:1")
    await appender.append(write_of("tag:1", claims=[claim]))
    swap = WriteSet([event("tag:1", 2), event("tag:2")], claims=[name("football", "tag:2")], releases=[claim])
    assert await appender.append(swap) == 3
    assert rows(writing.url, "SELECT value, owner FROM unique_claims") == [("football", "tag:2")]


async def test_a_claim_of_another_aggregate_cannot_be_released(appender: Appender, writing: Writing) -> None:
    await appender.append(write_of("tag:1", claims=[name("football", "tag:1")]))
    await appender.append(write_of("tag:2", releases=[name("football", "tag:2")]))
    assert rows(writing.url, "SELECT owner FROM unique_claims") == [("tag:1",)]


async def test_an_idempotency_key_that_is_used_already_fails_its_command_alone(appender: Appender, writing: Writing) -> None:
    await appender.append(WriteSet([event("test:a")], idempotency=keyed("k1")))
    results = await outcomes(
        appender,
        write_of("test:b"),
        WriteSet([event("test:c")], idempotency=keyed("k1", "second")),
        WriteSet([event("test:d")], idempotency=keyed("k2")),
    )
    assert (results[0], type(results[1]), results[2]) == (2, IdempotencyKeyUsed, 3)
    assert rows(writing.url, "SELECT key, status, result, streams, position FROM idempotency_keys ORDER BY 1") == [
        ("k1", 201, {"said": "first"}, ["test:a", "test:b"], 1),
        ("k2", 201, {"said": "first"}, ["test:a", "test:b"], 3),
    ]
    assert [stream for _, stream, _ in logged(writing.url)] == ["test:a", "test:b", "test:d"]


async def test_a_command_is_all_or_nothing(appender: Appender, writing: Writing) -> None:
    await appender.append(write_of("tag:1", claims=[name("football", "tag:1")]))
    key = str(uuid4())
    room = RegisterRecord(key, Room, {"name": "Studio 1"}).decide(None, at=NOON)
    shown = ViewRow(RECORD_VIEW, RECORD_VIEW.rows(room)[0], update=False)
    everything = WriteSet(
        [event("tag:2"), event("room:1")], rows=[shown], claims=[name("football", "tag:2")], idempotency=keyed("k1")
    )
    with pytest.raises(ClaimTaken):
        await appender.append(everything)
    counted = rows(
        writing.url, "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM record_view), count(*) FROM idempotency_keys"
    )
    assert counted == [(1, 0, 0)]


@pytest.mark.parametrize(
    "bad",
    [
        WriteSet([event("test:\0", 1)]),
        WriteSet([event("test:bad", metadata="{")]),
        WriteSet([event("test:bad")], claims=[Claim("tag.name", "\0", "tag:1")]),
        WriteSet([event("test:bad")], claims=[Claim("tag.name", "\ud800", "tag:1")]),
        WriteSet([event("test:bad", 2**63 - 1)], idempotency=keyed("k", status=2**40)),
        WriteSet([event("test:bad")], idempotency=keyed("k", status=2**70)),
    ],
    ids=["nul", "no json", "nul in a claim", "lone surrogate", "out of the column's range", "out of every range"],
)
async def test_a_row_that_cannot_be_written_fails_alone(appender: Appender, writing: Writing, bad: WriteSet) -> None:
    results = await outcomes(appender, write_of("test:a"), bad, write_of("test:b"))
    assert isinstance(results[1], Exception)
    assert not isinstance(results[1], DomainError)
    assert (results[0], results[2]) == (1, 2)
    assert await appender.append(write_of("test:c")) == 3
    assert whole(writing.url) == 3


async def test_with_too_many_waiting_the_next_is_unavailable(writing: Writing) -> None:
    appender = writing.appender(limits=AppendLimits(waiting=3))
    await appender.start()
    async with log_locked(writing.url):
        in_progress = asyncio.create_task(appender.append(write_of("test:0")))
        await until(lambda: writing.batches)
        waiting = [asyncio.create_task(appender.append(write_of(f"test:{n}"))) for n in (1, 2, 3)]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable) as refusal:
            await appender.append(write_of("test:4"))
    assert refusal.value.retry_after > 0
    assert await asyncio.gather(in_progress, *waiting) == [1, 2, 3, 4]
    assert await appender.append(write_of("test:4")) == 5
    await appender.stop()


async def test_when_the_oldest_waits_too_long_the_next_is_unavailable(writing: Writing) -> None:
    appender = writing.appender(limits=AppendLimits(age=0.05))
    await appender.start()
    async with log_locked(writing.url):
        in_progress = asyncio.create_task(appender.append(write_of("test:0")))
        await until(lambda: writing.batches)
        waiting = asyncio.create_task(appender.append(write_of("test:1")))
        await until(lambda: appender.oldest > 0.05)
        with pytest.raises(Unavailable):
            await appender.append(write_of("test:2"))
    assert (await in_progress, await waiting) == (1, 2)
    assert appender.oldest == 0
    await appender.stop()


async def test_stop_commits_what_was_accepted_and_accepts_no_more(writing: Writing) -> None:
    appender = writing.appender(limits=AppendLimits(batch=10))
    await appender.start()
    async with log_locked(writing.url):
        accepted = [asyncio.create_task(appender.append(write_of(f"test:{n}"))) for n in range(45)]
        await until(lambda: writing.batches)
        stopping = asyncio.create_task(appender.stop())
        await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            await appender.append(write_of("test:late"))
        assert not stopping.done()
    await stopping
    assert await asyncio.gather(*accepted) == list(range(1, 46))
    assert whole(writing.url) == 45
    assert all(connection.closed for connection in writing.database.made)


async def test_a_cancelled_caller_does_not_affect_the_others_in_the_batch(appender: Appender, writing: Writing) -> None:
    async with log_locked(writing.url):
        first = asyncio.create_task(appender.append(write_of("test:0")))
        await until(lambda: writing.batches)
        gone, stays = (asyncio.create_task(appender.append(write_of(f"test:{n}"))) for n in (1, 2))
        await asyncio.sleep(0)
        gone.cancel()
    assert (await first, await stays) == (1, 3)
    assert whole(writing.url) == 3


async def test_few_statements_are_prepared_however_varied_the_traffic(appender: Appender, writing: Writing) -> None:
    """Every text costs planning once and memory in every backend: it must not depend on the number of commands or rows."""
    room = RegisterRecord(str(uuid4()), Room, {"name": "Studio 1"}).decide(None, at=NOON)
    shown = ViewRow(RECORD_VIEW, RECORD_VIEW.rows(room)[0], update=False)
    number = 0
    for size in range(1, 25):
        appends = []
        for position in range(size):
            number += 1
            stream = f"test:{number}"
            appends.append(
                WriteSet(
                    [event(stream, version) for version in range(1, 2 + position % 4)],
                    claims=[name(stream, stream)] if position % 3 else [],
                    idempotency=keyed(stream) if position % 5 else None,
                    rows=[shown] if position == 0 and size % 2 else [],
                )
            )
        assert all(isinstance(results, int) for results in await outcomes(appender, *appends))
    connection = writing.database.made[0]
    results = await (
        await connection.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%log_append%'")
    ).fetchone()
    assert results is not None
    assert 1 <= results[0] <= 8
    assert len(writing.batches) == 24


async def test_the_application_may_not_change_the_log(appender: Appender, writing: Writing) -> None:
    await appender.append(write_of("test:a"))
    connection = writing.database.made[0]
    for attempt in ("UPDATE events SET topic = 'x'", "DELETE FROM events", "TRUNCATE events", "DELETE FROM commits"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await connection.execute(attempt.encode())
    with psycopg.connect(writing.url, autocommit=True) as owner:
        for attempt in ("UPDATE events SET topic = 'x'", "DELETE FROM events", "TRUNCATE events"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"):
                owner.execute(attempt.encode())
    assert whole(writing.url) == 1


async def test_a_recorded_time_that_is_ahead_of_the_clock_is_reported(
    appender: Appender, writing: Writing, caplog: pytest.LogCaptureFixture
) -> None:
    """The clock of the database leapt forwards and back: recorded times stand still until it has caught up."""
    await appender.append(write_of("test:a"))
    assert appender.ahead == 0
    as_superuser(writing.url, "UPDATE commits SET recorded_at = recorded_at + interval '10 minutes'")
    for stream in ("test:b", "test:c"):
        await appender.append(write_of(stream))
    assert 60 < appender.ahead <= 600
    assert caplog.text.count("ahead of the database's clock") == 1
    assert rows(writing.url, "SELECT count(DISTINCT recorded_at) FROM commits") == [(1,)]


async def test_the_isolation_level_is_not_the_servers_default(writing: Writing) -> None:
    """An append that has waited for another one would not see it at a higher level."""
    strict = make_conninfo(writing.url, options="-c default_transaction_isolation=serializable")
    async with Database(strict, size=1) as database:
        assert await database.row("SHOW transaction_isolation") == ("read committed",)
        connection = await database.connect("test")
        assert await (await connection.execute("SHOW transaction_isolation")).fetchone() == ("read committed",)
        await connection.close()

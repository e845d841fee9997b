"""Leases on shards: shared fairly, taken over when they end, and without writes of a former owner."""

from __future__ import annotations

import time
from uuid import UUID

import pytest
from psycopg import AsyncConnection

from api.wiring.core import Core
from projections.consumers.leases import (
    Assignment,
    LeaseKeeper,
    LeaseLost,
    MemberFault,
    MemberState,
    Renewal,
    ShardLease,
    ShardLeases,
    renew,
    shard_of,
)
from projections.consumers.parked_records import ParkedRecords
from projections.consumers.timeline import begin_epoch
from tests.projections.consuming import hold, park
from tests.projections.log.helpers import rows, until


def member(inner: Core, number: int, *, shards: int = 4, lease: float = 30.0) -> ShardLeases:
    return ShardLeases(inner.database, "work", shards=shards, member=UUID(int=number), host=f"host-{number}", lease=lease)


def run_out(url: str, number: int) -> None:
    """The lease of a member is over, and it has not been seen for as long."""
    past = "clock_timestamp() - interval '1 minute'"
    rows(url, f"UPDATE consumer_shards SET held_until = {past} WHERE owner = %s RETURNING 1", UUID(int=number))
    rows(url, f"UPDATE consumer_members SET seen_at = {past} WHERE member = %s RETURNING 1", UUID(int=number))


async def advance(inner: Core, leases: ShardLeases, shard_leases: dict[int, ShardLease], through: int) -> None:
    async with inner.database.connection() as connection, connection.transaction():
        await leases.advance(connection, shard_leases, through=through)


async def test_a_single_member_gets_all_shards_at_once(inner: Core) -> None:
    alone = member(inner, 1)
    await alone.start()
    leases = await hold(alone)
    assert leases.leases == {shard: ShardLease(epoch=1, position=0) for shard in range(4)}
    assert not leases.excess
    assert (await hold(alone)).leases == leases.leases, "what is renewed keeps its epoch"


async def test_a_new_member_gets_half_after_the_first_releases_it(inner: Core) -> None:
    first, second = member(inner, 1), member(inner, 2)
    await first.start()
    await hold(first)
    assert (await hold(second)).leases == {}
    leases = await hold(first)
    assert leases.excess == {2, 3}
    await first.release(leases.excess)
    assert (await hold(second)).leases == {2: ShardLease(2, 0), 3: ShardLease(2, 0)}
    assert (await hold(first)).leases == {0: ShardLease(1, 0), 1: ShardLease(1, 0)}


async def test_shards_of_a_dead_member_are_taken_over_with_a_new_epoch(inner: Core, database_url: str) -> None:
    dead, heir = member(inner, 1), member(inner, 2)
    await dead.start()
    leases = dict((await hold(dead)).leases)
    await advance(inner, dead, leases, 7)
    run_out(database_url, 1)
    assert (await hold(heir)).leases == {shard: ShardLease(epoch=2, position=7) for shard in range(4)}


async def test_a_write_of_a_former_owner_is_rolled_back(inner: Core, database_url: str) -> None:
    frozen, heir = member(inner, 1), member(inner, 2)
    await frozen.start()
    leases = dict((await hold(frozen)).leases)
    run_out(database_url, 1)
    await hold(heir)
    with pytest.raises(LeaseLost):
        await advance(inner, frozen, leases, 9)
    assert (await hold(heir)).leases[0].position == 0
    with pytest.raises(LeaseLost):
        await advance(inner, heir, {}, 9)


async def test_an_expired_lease_that_was_not_taken_is_renewed(inner: Core, database_url: str) -> None:
    slow = member(inner, 1)
    await slow.start()
    leases = dict((await hold(slow)).leases)
    run_out(database_url, 1)
    await advance(inner, slow, leases, 5)
    assert (await hold(slow)).leases == {shard: ShardLease(1, 5) for shard in range(4)}


async def test_a_checkpoint_never_goes_back(inner: Core) -> None:
    alone = member(inner, 1)
    await alone.start()
    leases = dict((await hold(alone)).leases)
    await advance(inner, alone, leases, 9)
    await advance(inner, alone, leases, 3)
    assert {share.position for share in (await hold(alone)).leases.values()} == {9}


async def test_a_member_that_leaves_releases_all_and_is_not_counted(inner: Core, database_url: str) -> None:
    first, second = member(inner, 1), member(inner, 2)
    await first.start()
    await hold(first)
    await first.leave()
    assert len((await hold(second, MemberState(3))).leases) == 4
    assert rows(database_url, "SELECT host, busy FROM consumer_members") == [("host-2", 3)]


async def test_with_more_members_than_shards_some_have_none(inner: Core) -> None:
    members = [member(inner, number, shards=1) for number in (1, 2, 3)]
    await members[0].start()
    assert [len((await hold(owner)).leases) for owner in members] == [1, 0, 0]


def test_the_shard_is_computed_with_crc32() -> None:
    assert [shard_of(key, 8) for key in ("a", "b", "1f0c5c3e-6b2b-4e0e-9d0f-6b1f3b8f3d11")] == [3, 1, 7]


async def test_a_renewal_keeps_what_is_held_and_takes_nothing(inner: Core, database_url: str) -> None:
    first, other = member(inner, 1, shards=2), member(inner, 2, shards=2)
    await first.start()
    leases = await hold(first)
    renewed = await hold(first, MemberState(fault=MemberFault(time.monotonic() - 5, "away")), takes=False)
    assert (renewed.leases, renewed.until >= leases.until) == (leases.leases, True)
    assert (await hold(other, takes=False)).leases == {}
    assert rows(database_url, "SELECT count(*) FROM consumer_members WHERE fault = 'away' AND failing_since < now()") == [(1,)]


async def test_a_consumer_that_does_not_read_the_log_gets_no_position(inner: Core, database_url: str) -> None:
    """A new epoch of the log, which sets positions back, does not set one either."""
    reader = ShardLeases(inner.database, "reader", shards=1, member=UUID(int=1))
    other = ShardLeases(inner.database, "other", shards=1, member=UUID(int=2), reads_log=False)
    for each in (reader, other):
        await each.start()
        await each.start()
    assert (await hold(other)).leases == {0: ShardLease(epoch=1, position=0)}
    async with await AsyncConnection.connect(database_url) as connection:
        await connection.execute("UPDATE consumer_shards SET position = 9 WHERE consumer = 'reader'")
        await begin_epoch(connection, since=0, reason="test")
    assert rows(database_url, "SELECT consumer, position FROM consumer_shards ORDER BY 1") == [("other", None), ("reader", 0)]


class Noting:
    """A member that notes each assignment."""

    def __init__(self, leases: ShardLeases, progress: tuple[int, int] | None = None) -> None:
        self.leases = leases
        self.progress = progress
        self.assignments: list[Assignment] = []

    def renewal(self) -> Renewal:
        return Renewal(self.leases, progress=self.progress)

    def renewed(self, assignment: Assignment) -> None:
        self.assignments.append(assignment)


async def test_the_leases_of_all_members_of_a_process_are_renewed_together(inner: Core) -> None:
    keeper = LeaseKeeper(inner.database)
    members = [Noting(ShardLeases(inner.database, name, shards=2, member=UUID(int=1), keeper=keeper)) for name in ("a", "b")]
    for each in members:
        await each.leases.start()
        await keeper.add(each, lease=30.0)
    await until(lambda: all(each.assignments for each in members))
    assert [each.assignments[-1].leases.keys() for each in members] == [{0, 1}, {0, 1}]
    for each in members:
        await keeper.remove(each)


async def test_a_shard_that_a_transaction_has_locked_delays_only_its_own_member(inner: Core, database_url: str) -> None:
    keeper = LeaseKeeper(inner.database)
    locked, free = [Noting(ShardLeases(inner.database, name, shards=1, member=UUID(int=1))) for name in ("locked", "free")]
    for each in (locked, free):
        await each.leases.start()
        await keeper.add(each, lease=30.0)
    await until(lambda: locked.assignments and free.assignments)
    async with await AsyncConnection.connect(database_url) as connection:
        await connection.execute("SELECT FROM consumer_shards WHERE consumer = 'locked' FOR UPDATE")
        before = len(locked.assignments), len(free.assignments)
        for renewals in (1, 2):
            keeper.hurry()
            await until(lambda renewals=renewals: len(free.assignments) >= before[1] + renewals)  # type: ignore[misc]
        assert len(locked.assignments) == before[0]
    await until(lambda: len(locked.assignments) > before[0])
    assert locked.assignments[-1].until > locked.assignments[0].until
    for each in (locked, free):
        await keeper.remove(each)


async def test_the_position_of_a_consumer_without_work_is_stored_with_its_lease_in_the_same_epoch_only(inner: Core) -> None:
    alone = member(inner, 1, shards=1)
    await alone.start()
    await hold(alone)
    assert [each.leases[0].position for each in await renew(inner.database, [Renewal(alone, progress=(1, 7))])] == [7]
    assert [each.leases[0].position for each in await renew(inner.database, [Renewal(alone, progress=(1, 3))])] == [7]
    assert [each.leases[0].position for each in await renew(inner.database, [Renewal(alone, progress=(2, 9))])] == [7]


async def test_a_renewal_reports_parked_records_that_are_to_be_retried(inner: Core) -> None:
    alone = member(inner, 1)
    await alone.start()
    assert not (await hold(alone)).replay
    await park(inner, "work", (3, "event:1"))
    assert not (await hold(alone)).replay
    await ParkedRecords(inner.database).request_replay("work")
    assert (await hold(alone)).replay

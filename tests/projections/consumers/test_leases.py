"""Leases on shards: shared fairly, taken over when they end, and without writes of a former owner."""

from __future__ import annotations

import time
from uuid import UUID

import pytest
from psycopg import AsyncConnection

from api.wiring.core import Core
from projections.consumers.leases import LeaseLost, MemberFault, MemberState, ShardLease, ShardLeases, shard_of
from projections.consumers.timeline import begin_epoch
from tests.projections.log.helpers import rows


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
    leases = await alone.hold()
    assert leases.leases == {shard: ShardLease(epoch=1, position=0) for shard in range(4)}
    assert not leases.excess
    assert (await alone.hold()).leases == leases.leases, "what is renewed keeps its epoch"


async def test_a_new_member_gets_half_after_the_first_releases_it(inner: Core) -> None:
    first, second = member(inner, 1), member(inner, 2)
    await first.start()
    await first.hold()
    assert (await second.hold()).leases == {}
    leases = await first.hold()
    assert leases.excess == {2, 3}
    await first.release(leases.excess)
    assert (await second.hold()).leases == {2: ShardLease(2, 0), 3: ShardLease(2, 0)}
    assert (await first.hold()).leases == {0: ShardLease(1, 0), 1: ShardLease(1, 0)}


async def test_shards_of_a_dead_member_are_taken_over_with_a_new_epoch(inner: Core, database_url: str) -> None:
    dead, heir = member(inner, 1), member(inner, 2)
    await dead.start()
    leases = dict((await dead.hold()).leases)
    await advance(inner, dead, leases, 7)
    run_out(database_url, 1)
    assert (await heir.hold()).leases == {shard: ShardLease(epoch=2, position=7) for shard in range(4)}


async def test_a_write_of_a_former_owner_is_rolled_back(inner: Core, database_url: str) -> None:
    frozen, heir = member(inner, 1), member(inner, 2)
    await frozen.start()
    leases = dict((await frozen.hold()).leases)
    run_out(database_url, 1)
    await heir.hold()
    with pytest.raises(LeaseLost):
        await advance(inner, frozen, leases, 9)
    assert (await heir.hold()).leases[0].position == 0
    with pytest.raises(LeaseLost):
        await advance(inner, heir, {}, 9)


async def test_an_expired_lease_that_was_not_taken_is_renewed(inner: Core, database_url: str) -> None:
    slow = member(inner, 1)
    await slow.start()
    leases = dict((await slow.hold()).leases)
    run_out(database_url, 1)
    await advance(inner, slow, leases, 5)
    assert (await slow.hold()).leases == {shard: ShardLease(1, 5) for shard in range(4)}


async def test_a_checkpoint_never_goes_back(inner: Core) -> None:
    alone = member(inner, 1)
    await alone.start()
    leases = dict((await alone.hold()).leases)
    await advance(inner, alone, leases, 9)
    await advance(inner, alone, leases, 3)
    assert {share.position for share in (await alone.hold()).leases.values()} == {9}


async def test_a_member_that_leaves_releases_all_and_is_not_counted(inner: Core, database_url: str) -> None:
    first, second = member(inner, 1), member(inner, 2)
    await first.start()
    await first.hold()
    await first.leave()
    assert len((await second.hold(MemberState(3))).leases) == 4
    assert rows(database_url, "SELECT host, busy FROM consumer_members") == [("host-2", 3)]


async def test_with_more_members_than_shards_some_have_none(inner: Core) -> None:
    members = [member(inner, number, shards=1) for number in (1, 2, 3)]
    await members[0].start()
    assert [len((await owner.hold()).leases) for owner in members] == [1, 0, 0]


def test_the_shard_is_computed_with_crc32() -> None:
    assert [shard_of(key, 8) for key in ("a", "b", "1f0c5c3e-6b2b-4e0e-9d0f-6b1f3b8f3d11")] == [3, 1, 7]


async def test_a_renewal_keeps_what_is_held_and_takes_nothing(inner: Core, database_url: str) -> None:
    first, other = member(inner, 1, shards=2), member(inner, 2, shards=2)
    await first.start()
    leases = await first.hold()
    renewed = await first.renew(MemberState(fault=MemberFault(time.monotonic() - 5, "away")))
    assert (renewed.leases, renewed.until >= leases.until) == (leases.leases, True)
    assert (await other.renew()).leases == {}
    assert rows(database_url, "SELECT count(*) FROM consumer_members WHERE fault = 'away' AND failing_since < now()") == [(1,)]


async def test_a_consumer_that_does_not_read_the_log_gets_no_position(inner: Core, database_url: str) -> None:
    """A new epoch of the log, which sets positions back, does not set one either."""
    reader = ShardLeases(inner.database, "reader", shards=1, member=UUID(int=1))
    other = ShardLeases(inner.database, "other", shards=1, member=UUID(int=2), reads_log=False)
    for each in (reader, other):
        await each.start()
        await each.start()
    assert (await other.hold()).leases == {0: ShardLease(epoch=1, position=0)}
    async with await AsyncConnection.connect(database_url) as connection:
        await connection.execute("UPDATE consumer_shards SET position = 9 WHERE consumer = 'reader'")
        await begin_epoch(connection, since=0, reason="test")
    assert rows(database_url, "SELECT consumer, position FROM consumer_shards ORDER BY 1") == [("other", None), ("reader", 0)]

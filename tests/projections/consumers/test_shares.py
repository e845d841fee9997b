"""Who holds which shard: shared out fairly, taken over when a lease is over, and never written for by a former owner."""

from __future__ import annotations

from uuid import UUID

import pytest

from api.core import Core
from projections.consumers.shares import Fenced, Share, Shares, shard_of
from tests.projections.log.helpers import rows


def member(inner: Core, number: int, *, shards: int = 4, lease: float = 30.0) -> Shares:
    return Shares(inner.database, "work", shards=shards, member=UUID(int=number), host=f"host-{number}", lease=lease)


def run_out(url: str, number: int) -> None:
    """The lease of a member is over, and it has not been seen for as long."""
    past = "clock_timestamp() - interval '1 minute'"
    rows(url, f"UPDATE consumer_shards SET held_until = {past} WHERE owner = %s RETURNING 1", UUID(int=number))
    rows(url, f"UPDATE consumer_members SET seen_at = {past} WHERE member = %s RETURNING 1", UUID(int=number))


async def advance(inner: Core, shares: Shares, held: dict[int, Share], through: int) -> None:
    async with inner.database.connection() as connection, connection.transaction():
        await shares.advance(connection, held, through=through)


async def test_one_that_is_alone_holds_everything_from_the_beginning(inner: Core) -> None:
    alone = member(inner, 1)
    await alone.start()
    held = await alone.hold()
    assert held.shares == {shard: Share(epoch=1, position=0) for shard in range(4)}
    assert not held.surplus
    assert (await alone.hold()).shares == held.shares, "what is renewed keeps its epoch"


async def test_whoever_joins_gets_half_of_it_once_the_first_lets_go(inner: Core) -> None:
    first, second = member(inner, 1), member(inner, 2)
    await first.start()
    await first.hold()
    assert (await second.hold()).shares == {}
    held = await first.hold()
    assert held.surplus == {2, 3}
    await first.release(held.surplus)
    assert (await second.hold()).shares == {2: Share(2, 0), 3: Share(2, 0)}
    assert (await first.hold()).shares == {0: Share(1, 0), 1: Share(1, 0)}


async def test_what_a_dead_member_held_goes_to_those_who_live_with_a_new_epoch(inner: Core, database_url: str) -> None:
    dead, heir = member(inner, 1), member(inner, 2)
    await dead.start()
    held = dict((await dead.hold()).shares)
    await advance(inner, dead, held, 7)
    run_out(database_url, 1)
    assert (await heir.hold()).shares == {shard: Share(epoch=2, position=7) for shard in range(4)}


async def test_a_former_owner_cannot_write_and_nothing_of_its_transaction_stays(inner: Core, database_url: str) -> None:
    frozen, heir = member(inner, 1), member(inner, 2)
    await frozen.start()
    held = dict((await frozen.hold()).shares)
    run_out(database_url, 1)
    await heir.hold()
    with pytest.raises(Fenced):
        await advance(inner, frozen, held, 9)
    assert (await heir.hold()).shares[0].position == 0
    with pytest.raises(Fenced):
        await advance(inner, heir, {}, 9)


async def test_a_lease_that_ran_out_unnoticed_is_renewed_as_long_as_nobody_took_it(inner: Core, database_url: str) -> None:
    slow = member(inner, 1)
    await slow.start()
    held = dict((await slow.hold()).shares)
    run_out(database_url, 1)
    await advance(inner, slow, held, 5)
    assert (await slow.hold()).shares == {shard: Share(1, 5) for shard in range(4)}


async def test_a_checkpoint_never_goes_back(inner: Core) -> None:
    alone = member(inner, 1)
    await alone.start()
    held = dict((await alone.hold()).shares)
    await advance(inner, alone, held, 9)
    await advance(inner, alone, held, 3)
    assert {share.position for share in (await alone.hold()).shares.values()} == {9}


async def test_one_that_leaves_gives_everything_back_and_is_not_counted_any_more(inner: Core, database_url: str) -> None:
    first, second = member(inner, 1), member(inner, 2)
    await first.start()
    await first.hold()
    await first.leave()
    assert len((await second.hold(busy=3)).shares) == 4
    assert rows(database_url, "SELECT host, busy FROM consumer_members") == [("host-2", 3)]


async def test_more_members_than_shards_leave_some_waiting(inner: Core) -> None:
    members = [member(inner, number, shards=1) for number in (1, 2, 3)]
    await members[0].start()
    assert [len((await one.hold()).shares) for one in members] == [1, 0, 0]


def test_shards_are_those_of_crc32_so_that_every_transport_shards_alike() -> None:
    assert [shard_of(key, 8) for key in ("a", "b", "1f0c5c3e-6b2b-4e0e-9d0f-6b1f3b8f3d11")] == [3, 1, 7]

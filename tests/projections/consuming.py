"""The state of consumers, read from their tables."""

from __future__ import annotations

from uuid import UUID

from api.wiring.core import Core
from projections.consumers.leases import IDLE, Assignment, MemberState, Renewal, ShardLeases, renew

MEMBER = UUID("0f0e0d0c-0b0a-4908-8706-0504030201aa")


async def hold(leases: ShardLeases, state: MemberState = IDLE, *, takes: bool = True) -> Assignment:
    """Renew the leases of one member."""
    [assignment] = await renew(leases.database, [Renewal(leases, state, takes=takes)])
    return assignment


async def consumer(inner: Core, name: str, *positions: int | None) -> None:
    """Create a consumer with a shard at each of these positions, run by one process. None stands for a consumer that does not read
    the log."""
    await inner.database.execute(
        "INSERT INTO consumer_shards (consumer, shard, position, owner)"
        " SELECT %s, n - 1, position, %s FROM unnest(%s::bigint[]) WITH ORDINALITY AS p (position, n)",
        (name, MEMBER, list(positions)),
    )
    await inner.database.execute(
        "INSERT INTO consumer_members (consumer, member, host, busy, seen_at) VALUES (%s, %s, 'studio-1', 2, '2031-01-02 12:00Z')",
        (name, MEMBER),
    )


async def park(inner: Core, name: str, *places: tuple[int, str]) -> None:
    """Positions and streams; each parked as many seconds after noon as its position says."""
    for position, stream in places:
        await inner.database.execute(
            "INSERT INTO parked_records (consumer, position, stream, topic, error, parked_at)"
            " VALUES (%s, %s, %s, %s, 'ValueError: no', timestamptz '2031-01-02 12:00Z' + %s * interval '1 second')",
            (name, position, stream, f"{stream.partition(':')[0]}.described", position),
        )


async def wanted(inner: Core, name: str) -> list[int]:
    """The positions that are to be tried again."""
    rows = await inner.database.rows("SELECT position FROM parked_records WHERE consumer = %s AND replay ORDER BY 1", (name,))
    return [position for (position,) in rows]

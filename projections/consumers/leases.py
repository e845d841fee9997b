"""Leases on the shards of a consumer. Processes (members) hold them as rows of a table, timed by the clock of the database.

A shard gets a new epoch with each new owner. A write for a shard checks the epoch in the same transaction, so a process that was
frozen beyond the end of its lease writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID
from zlib import crc32

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.kernel.database.arrays import bigints
from projections.kernel.database.database import Database, unavailable

LEASE = 5.0
RELAY: Final = "relay "
"""The prefix of the name of a relay; the id of its Kafka cluster follows. Readers recognise the records that a relay sends again.
"""

_MAKE = """
INSERT INTO consumer_shards (consumer, shard, position) SELECT %s, generate_series(0, %s - 1), %s::bigint ON CONFLICT DO NOTHING
"""
_THAWED_IN_TIME = "SET LOCAL idle_in_transaction_session_timeout = '5s'"
_SEEN = """
INSERT INTO consumer_members (consumer, member, host, busy, failing_since, fault, warning, reads_log_since, seen_at)
VALUES (
    %s, %s, %s, %s, clock_timestamp() - make_interval(secs => %s), %s, %s, clock_timestamp() - make_interval(secs => %s),
    clock_timestamp()
)
ON CONFLICT (consumer, member) DO UPDATE
SET busy = excluded.busy, failing_since = excluded.failing_since, fault = excluded.fault, warning = excluded.warning,
    reads_log_since = excluded.reads_log_since, seen_at = excluded.seen_at
"""
_FORGET = "DELETE FROM consumer_members WHERE consumer = %s AND seen_at < clock_timestamp() - 2 * make_interval(secs => %s)"
_ALIVE = "SELECT count(*) FROM consumer_members WHERE consumer = %s AND seen_at > clock_timestamp() - make_interval(secs => %s)"
_RENEW = """
UPDATE consumer_shards SET held_until = clock_timestamp() + make_interval(secs => %s)
WHERE consumer = %s AND owner = %s RETURNING shard, epoch, coalesce(position, 0)
"""
_TAKE = """
UPDATE consumer_shards s SET owner = %s, epoch = epoch + 1, held_until = clock_timestamp() + make_interval(secs => %s)
FROM (
    SELECT consumer, shard FROM consumer_shards
    WHERE consumer = %s AND (owner IS NULL OR held_until < clock_timestamp())
    ORDER BY shard LIMIT %s FOR UPDATE SKIP LOCKED
) free
WHERE s.consumer = free.consumer AND s.shard = free.shard RETURNING s.shard, s.epoch, coalesce(s.position, 0)
"""
_RELEASE = """
UPDATE consumer_shards SET owner = NULL, held_until = '-infinity' WHERE consumer = %s AND owner = %s AND shard = ANY(%s::bigint[])
"""
_LEAVE = "DELETE FROM consumer_members WHERE consumer = %s AND member = %s"
_ADVANCE = """
UPDATE consumer_shards s SET position = greatest(s.position, %s)
FROM unnest(%s::bigint[], %s::bigint[]) AS held (shard, epoch)
WHERE s.consumer = %s AND s.owner = %s AND s.shard = held.shard AND s.epoch = held.epoch
"""


_SET_BACK = "UPDATE consumer_shards SET position = least(position, %s) WHERE consumer = %s"


class LeaseLost(Exception):
    """Raised when the shard of a write belongs to another member now."""


@dataclass(frozen=True, slots=True)
class ShardLease:
    """A lease on a shard. Everything up to `position` has been processed; it is 0 if the consumer does not read the log."""

    epoch: int
    position: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """The shards of a member, each with its lease.

    `excess` are the shards above its fair share, to be released as soon as no work is in progress for them. Until `until`, in
    seconds of `time.monotonic`, no other member can hold the shards. `alive` is the number of members, including this one; 0 if
    unknown.
    """

    leases: Mapping[int, ShardLease]
    excess: frozenset[int] = frozenset()
    until: float = 0.0
    alive: int = 0


NOTHING = Assignment({})


@dataclass(frozen=True, slots=True)
class MemberFault:
    """The reason why a member's work does not advance, and the time of `time.monotonic` since when."""

    since: float
    what: str


@dataclass(frozen=True, slots=True)
class MemberState:
    """The state of a member for operators.

    It consists of the amount of work in progress, a persistent fault, a warning (a sentence about missing protection on its
    machine), and the time of `time.monotonic` since when it reads the log instead of a broker.
    """

    busy: int = 0
    fault: MemberFault | None = None
    warning: str | None = None
    reads_log_since: float | None = None


IDLE: Final = MemberState()


_REMOVE = """
WITH shards AS (
    SELECT owner IS NOT NULL AND held_until > clock_timestamp() AS held
    FROM consumer_shards WHERE consumer = %(consumer)s FOR UPDATE
), running AS (
    SELECT FROM consumer_members WHERE consumer = %(consumer)s AND seen_at > clock_timestamp() - make_interval(secs => %(lease)s)
    UNION ALL SELECT FROM shards WHERE held
), gone AS (
    DELETE FROM consumer_shards WHERE consumer = %(consumer)s AND NOT EXISTS (SELECT FROM running) RETURNING shard
), members AS (
    DELETE FROM consumer_members WHERE consumer = %(consumer)s AND EXISTS (SELECT FROM gone)
), parked AS (
    DELETE FROM parked_records WHERE consumer = %(consumer)s AND EXISTS (SELECT FROM gone)
)
SELECT count(*) FROM gone
"""


async def forget(database: Database, consumer: str) -> bool:
    """Delete the data of a consumer: its positions, processes and parked records. Return False if a process runs it."""
    row = await database.row(_REMOVE, {"consumer": consumer, "lease": LEASE})
    return row is not None and row[0] > 0


async def set_back(database: Database, consumer: str, *, position: int) -> None:
    """Make a consumer read again the events after this position."""
    await database.execute(_SET_BACK, (position, consumer))


class ShardLeases:
    """The leases of one member in one consumer. With `reads_log`, it stores positions in the log, and has a lag."""

    def __init__(
        self,
        database: Database,
        consumer: str,
        *,
        shards: int,
        member: UUID,
        host: str = "",
        lease: float = LEASE,
        reads_log: bool = True,
    ) -> None:
        self._database = database
        self.consumer = consumer
        self.shards = shards
        self.member = member
        self.lease = lease
        self._host = host
        self._first = 0 if reads_log else None

    @property
    def timeline(self) -> int:
        """The timeline of the primary that stores the leases."""
        return self._database.timeline

    async def start(self) -> None:
        await self._database.execute(_MAKE, (self.consumer, self.shards, self._first))

    async def renew(self, state: MemberState = IDLE) -> Assignment:
        """Renew the leases of this member, and take no others."""
        until = time.monotonic() + self.lease
        with unavailable():
            async with self._database.connection() as connection:
                await connection.execute(_SEEN, self._seen(state))
                alive, leases = await self._renew(connection)
        return Assignment(leases, until=until, alive=alive)

    async def hold(self, state: MemberState = IDLE) -> Assignment:
        """Renew the leases and take free shards, up to a fair share. Call this about three times during a lease."""
        until = time.monotonic() + self.lease
        with unavailable():
            async with self._database.connection() as connection, connection.transaction():
                await connection.execute(_THAWED_IN_TIME)
                await connection.execute(_SEEN, self._seen(state))
                await connection.execute(_FORGET, (self.consumer, self.lease))
                alive, leases = await self._renew(connection)
                fair = -(-self.shards // max(alive, 1))
                if len(leases) < fair:
                    taken = await connection.execute(_TAKE, (self.member, self.lease, self.consumer, fair - len(leases)))
                    leases |= _leases(await taken.fetchall())
        return Assignment(leases, frozenset(sorted(leases)[fair:]), until, alive)

    async def _renew(self, connection: AsyncConnection[TupleRow]) -> tuple[int, dict[int, ShardLease]]:
        """Return the number of members that are alive, and the renewed leases of this one."""
        counted = await connection.execute(_ALIVE, (self.consumer, self.lease))
        alive = (await counted.fetchone() or (1,))[0]
        renewed = await connection.execute(_RENEW, (self.lease, self.consumer, self.member))
        return alive, _leases(await renewed.fetchall())

    def _seen(self, state: MemberState) -> tuple[object, ...]:
        fault = state.fault
        failing, what = (None, None) if fault is None else (time.monotonic() - fault.since, fault.what)
        reading = None if state.reads_log_since is None else time.monotonic() - state.reads_log_since
        return (self.consumer, self.member, self._host, state.busy, failing, what, state.warning, reading)

    async def release(self, shards: Iterable[int]) -> None:
        """Free shards for other members. No work may be in progress for them."""
        await self._database.execute(_RELEASE, (self.consumer, self.member, bigints(list(shards))))

    async def leave(self) -> None:
        """Release all shards and remove the member."""
        await self.release(range(self.shards))
        await self._database.execute(_LEAVE, (self.consumer, self.member))

    async def advance(self, connection: AsyncConnection[TupleRow], leases: Mapping[int, ShardLease], *, through: int) -> None:
        """Move the checkpoint of these shards, in the caller's transaction. Raise `LeaseLost` if another member owns one now; the
        transaction must then be rolled back."""
        epochs = [lease.epoch for lease in leases.values()]
        moved = await connection.execute(
            _ADVANCE, (through, bigints(list(leases)), bigints(epochs), self.consumer, self.member), binary=True
        )
        if not leases or moved.rowcount != len(leases):
            raise LeaseLost(self.consumer)


def _leases(rows: Iterable[TupleRow]) -> dict[int, ShardLease]:
    return {shard: ShardLease(epoch, position) for shard, epoch, position in rows}


def shard_of(key: str, shards: int) -> int:
    """Return the shard of an aggregate by its id. It is the same for both transports."""
    return crc32(key.encode()) % shards

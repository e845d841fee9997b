"""Who does which part of a consumer's work. Shards are leased to members (processes) by rows, on the database's own clock.

A share that changes hands gets a new epoch. Whoever writes on behalf of a share says which epoch it holds, in the same transaction;
a former owner, frozen past its lease and thawed, therefore writes nothing. architecture.md, §3.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID
from zlib import crc32

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.kernel.arrays import bigints
from projections.kernel.database import Database, unavailable

LEASE = 5.0

_MAKE = """
INSERT INTO consumer_shards (consumer, shard) SELECT %s, generate_series(0, %s - 1) ON CONFLICT DO NOTHING
"""
_THAWED_IN_TIME = "SET LOCAL idle_in_transaction_session_timeout = '5s'"
_SEEN = """
INSERT INTO consumer_members (consumer, member, host, busy, seen_at) VALUES (%s, %s, %s, %s, clock_timestamp())
ON CONFLICT (consumer, member) DO UPDATE SET busy = excluded.busy, seen_at = excluded.seen_at
"""
_FORGET = "DELETE FROM consumer_members WHERE consumer = %s AND seen_at < clock_timestamp() - 2 * make_interval(secs => %s)"
_ALIVE = "SELECT count(*) FROM consumer_members WHERE consumer = %s AND seen_at > clock_timestamp() - make_interval(secs => %s)"
_RENEW = """
UPDATE consumer_shards SET held_until = clock_timestamp() + make_interval(secs => %s)
WHERE consumer = %s AND owner = %s RETURNING shard, epoch, position
"""
_TAKE = """
UPDATE consumer_shards s SET owner = %s, epoch = epoch + 1, held_until = clock_timestamp() + make_interval(secs => %s)
FROM (
    SELECT consumer, shard FROM consumer_shards
    WHERE consumer = %s AND (owner IS NULL OR held_until < clock_timestamp())
    ORDER BY shard LIMIT %s FOR UPDATE SKIP LOCKED
) free
WHERE s.consumer = free.consumer AND s.shard = free.shard RETURNING s.shard, s.epoch, s.position
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


class Fenced(Exception):
    """A share that something was to be written for belongs to somebody else by now."""


@dataclass(frozen=True, slots=True)
class Share:
    """`position`: everything up to it has been dealt with."""

    epoch: int
    position: int


@dataclass(frozen=True, slots=True)
class Holding:
    """What this member holds, by shard; `surplus` are those among them that others lack, to be released when convenient. `until`
    is in seconds of `time.monotonic`: up to then nobody else holds them."""

    shares: Mapping[int, Share]
    surplus: frozenset[int] = frozenset()
    until: float = 0.0


NOTHING = Holding({})


class Shares:
    """One member's part in one consumer."""

    def __init__(
        self, database: Database, consumer: str, *, shards: int, member: UUID, host: str = "", lease: float = LEASE
    ) -> None:
        self._database = database
        self.consumer = consumer
        self.shards = shards
        self.member = member
        self.lease = lease
        self._host = host

    async def start(self) -> None:
        await self._database.execute(_MAKE, (self.consumer, self.shards))

    async def hold(self, *, busy: int = 0) -> Holding:
        """Renew what is held, take what is free, up to a fair share. To be called some three times within a lease. `busy` is what
        operators are shown: how much is under way."""
        until = time.monotonic() + self.lease
        with unavailable():
            async with self._database.connection() as connection, connection.transaction():
                await connection.execute(_THAWED_IN_TIME)
                await connection.execute(_SEEN, (self.consumer, self.member, self._host, busy))
                await connection.execute(_FORGET, (self.consumer, self.lease))
                counted = await connection.execute(_ALIVE, (self.consumer, self.lease))
                alive = (await counted.fetchone() or (1,))[0]
                fair = -(-self.shards // max(alive, 1))
                renewed = await connection.execute(_RENEW, (self.lease, self.consumer, self.member))
                shares = _shares(await renewed.fetchall())
                if len(shares) < fair:
                    wanted = (self.member, self.lease, self.consumer, fair - len(shares))
                    taken = await connection.execute(_TAKE, wanted)
                    shares |= _shares(await taken.fetchall())
        return Holding(shares, frozenset(sorted(shares)[fair:]), until)

    async def release(self, shards: Iterable[int]) -> None:
        """Give shards to whoever wants them. Nothing may be under way for them any more."""
        await self._database.execute(_RELEASE, (self.consumer, self.member, bigints(list(shards))))

    async def leave(self) -> None:
        await self.release(range(self.shards))
        await self._database.execute(_LEAVE, (self.consumer, self.member))

    async def advance(self, connection: AsyncConnection[TupleRow], shares: Mapping[int, Share], *, through: int) -> None:
        """Move the checkpoint of these shares, in the caller's transaction. Raises `Fenced` when one is not ours any more; nothing
        of the transaction may be committed then."""
        epochs = [share.epoch for share in shares.values()]
        moved = await connection.execute(
            _ADVANCE, (through, bigints(list(shares)), bigints(epochs), self.consumer, self.member), binary=True
        )
        if not shares or moved.rowcount != len(shares):
            raise Fenced(self.consumer)


def _shares(rows: Iterable[TupleRow]) -> dict[int, Share]:
    return {shard: Share(epoch, position) for shard, epoch, position in rows}


def shard_of(key: str, shards: int) -> int:
    """The shard of an aggregate, by its id. Both transports shard alike."""
    return crc32(key.encode()) % shards

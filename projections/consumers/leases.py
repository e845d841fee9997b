"""Leases on the shards of a consumer. Processes (members) hold them as rows of a table, timed by the clock of the database.

A shard gets a new epoch with each new owner. A write for a shard checks the epoch in the same transaction, so a process that was
frozen beyond the end of its lease writes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, Protocol
from uuid import UUID
from zlib import crc32

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.kernel.background_task import TRANSIENT, BackgroundTask, start_task
from projections.kernel.database.arrays import bigints
from projections.kernel.database.database import Database, unavailable

LEASE = 5.0
PAUSE: Final = 0.02
"""Seconds between two renewals at least."""
RELAY: Final = "relay "
"""The prefix of the name of a relay; the id of its Kafka cluster follows. Readers recognise the records that a relay sends again.
"""

_MAKE = """
INSERT INTO consumer_shards (consumer, shard, position) SELECT %s, generate_series(0, %s - 1), %s::bigint ON CONFLICT DO NOTHING
"""
_RENEW = """
WITH asked AS MATERIALIZED (
    SELECT * FROM unnest(
        %(consumers)s::text[], %(members)s::uuid[], %(hosts)s::text[], %(busy)s::integer[], %(failing)s::float8[],
        %(faults)s::text[], %(warnings)s::text[], %(reading)s::float8[], %(leases)s::float8[], %(shards)s::bigint[],
        %(takes)s::boolean[], %(epochs)s::bigint[], %(positions)s::bigint[]
    ) WITH ORDINALITY AS a (
        consumer, member, host, busy, failing, fault, warning, reading, lease, shards, takes, epoch, position, n
    )
), seen AS (
    INSERT INTO consumer_members (consumer, member, host, busy, failing_since, fault, warning, reads_log_since, seen_at)
    SELECT consumer, member, host, busy, clock_timestamp() - make_interval(secs => failing), fault, warning,
        clock_timestamp() - make_interval(secs => reading), clock_timestamp()
    FROM asked ON CONFLICT (consumer, member) DO UPDATE
    SET busy = excluded.busy, failing_since = excluded.failing_since, fault = excluded.fault, warning = excluded.warning,
        reads_log_since = excluded.reads_log_since, seen_at = excluded.seen_at
), forgotten AS (
    DELETE FROM consumer_members m USING (
        SELECT d.consumer, d.member FROM asked a JOIN consumer_members d ON d.consumer = a.consumer AND d.member <> a.member
        WHERE d.seen_at < clock_timestamp() - 2 * make_interval(secs => a.lease) FOR UPDATE OF d SKIP LOCKED
    ) AS dead WHERE m.consumer = dead.consumer AND m.member = dead.member
), own AS MATERIALIZED (
    SELECT a.n, s.shard, s.epoch, coalesce(s.position, 0) AS position
    FROM asked a JOIN consumer_shards s ON s.consumer = a.consumer AND s.owner = a.member
), free_to_write AS MATERIALIZED (
    SELECT a.n, s.consumer, s.shard FROM asked a JOIN consumer_shards s ON s.consumer = a.consumer AND s.owner = a.member
    FOR NO KEY UPDATE OF s
), renewed AS (
    UPDATE consumer_shards s
    SET held_until = clock_timestamp() + make_interval(secs => a.lease),
        position = CASE WHEN s.epoch = a.epoch THEN greatest(s.position, a.position) ELSE s.position END
    FROM free_to_write f JOIN asked a USING (n)
    WHERE s.consumer = f.consumer AND s.shard = f.shard AND s.owner = a.member
    RETURNING a.n, s.shard, s.epoch, coalesce(s.position, 0) AS position
), counted AS MATERIALIZED (
    SELECT a.n, 1 + (
        SELECT count(*) FROM consumer_members m
        WHERE m.consumer = a.consumer AND m.member <> a.member AND m.seen_at > clock_timestamp() - make_interval(secs => a.lease)
    ) AS alive, (SELECT count(*) FROM own WHERE own.n = a.n) AS held
    FROM asked a
), free AS MATERIALIZED (
    SELECT a.n, f.consumer, f.shard FROM asked a JOIN counted c USING (n) CROSS JOIN LATERAL (
        SELECT s.consumer, s.shard FROM consumer_shards s
        WHERE s.consumer = a.consumer AND s.owner IS DISTINCT FROM a.member
            AND (s.owner IS NULL OR s.held_until < clock_timestamp())
        ORDER BY s.shard LIMIT greatest((a.shards + c.alive - 1) / c.alive - c.held, 0) FOR NO KEY UPDATE SKIP LOCKED
    ) AS f WHERE a.takes
), taken AS (
    UPDATE consumer_shards s
    SET owner = a.member, epoch = s.epoch + 1, held_until = clock_timestamp() + make_interval(secs => a.lease)
    FROM free f JOIN asked a USING (n) WHERE s.consumer = f.consumer AND s.shard = f.shard
    RETURNING a.n, s.shard, s.epoch, coalesce(s.position, 0) AS position
)
SELECT c.n, c.alive, EXISTS (SELECT FROM parked_records p WHERE p.consumer = a.consumer AND p.replay),
    h.shard, h.epoch, h.position, h.renewed
FROM counted c JOIN asked a USING (n) LEFT JOIN (
    SELECT own.n, own.shard, coalesce(r.epoch, own.epoch), coalesce(r.position, own.position), r.n IS NOT NULL
    FROM own LEFT JOIN renewed r USING (n, shard) UNION ALL SELECT n, shard, epoch, position, true FROM taken
) AS h (n, shard, epoch, position, renewed) USING (n)
"""
"""Renews the shards of several members, and takes free ones up to the fair share of each."""
_RENEW_UNLOCKED = _RENEW.replace("FOR NO KEY UPDATE OF s\n", "FOR NO KEY UPDATE OF s SKIP LOCKED\n")
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


class ShardLease(NamedTuple):
    """A lease on a shard. Everything up to `position` has been processed; it is 0 if the consumer does not read the log."""

    epoch: int
    position: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """The shards of a member, each with its lease.

    `excess` are the shards above its fair share, to be released as soon as no work is in progress for them. Until `until`, in
    seconds of `time.monotonic`, no other member can hold the shards; it is 0 if a shard was locked and not renewed. `alive` is the
    number of members, including this one; 0 if unknown. `replay` is True if parked records are to be retried.
    """

    leases: Mapping[int, ShardLease]
    excess: frozenset[int] = frozenset()
    until: float = 0.0
    alive: int = 0
    replay: bool = False


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


@dataclass(frozen=True, slots=True)
class Renewal:
    """The request of a member: it renews its leases, and takes free shards if it `takes` them. `progress` is the epoch and the
    position of a consumer with one shard that has nothing to do up to there."""

    leases: ShardLeases
    state: MemberState = IDLE
    takes: bool = True
    progress: tuple[int, int] | None = None


async def renew(database: Database, renewals: Sequence[Renewal], *, wait: bool = True) -> list[Assignment]:
    """Renew the leases of these members by one statement, which waits for locked shards only with `wait`."""
    now = time.monotonic()
    states, leases = [each.state for each in renewals], [each.leases for each in renewals]
    asked = {
        "consumers": [each.consumer for each in leases],
        "members": [each.member for each in leases],
        "hosts": [each.host for each in leases],
        "busy": [state.busy for state in states],
        "failing": [None if state.fault is None else now - state.fault.since for state in states],
        "faults": [None if state.fault is None else state.fault.what for state in states],
        "warnings": [state.warning for state in states],
        "reading": [None if state.reads_log_since is None else now - state.reads_log_since for state in states],
        "leases": [each.lease for each in leases],
        "shards": [each.shards for each in leases],
        "takes": [each.takes for each in renewals],
        "epochs": [None if each.progress is None else each.progress[0] for each in renewals],
        "positions": [None if each.progress is None else each.progress[1] for each in renewals],
    }
    with unavailable():
        async with database.connection() as connection:
            rows = await (await connection.execute(_RENEW if wait else _RENEW_UNLOCKED, asked)).fetchall()
    by_member: defaultdict[int, list[TupleRow]] = defaultdict(list)
    for n, *row in rows:
        by_member[n - 1].append(tuple(row))
    return [_assignment(by_member[n], each, until=now + each.lease) for n, each in enumerate(leases)]


def _assignment(rows: Sequence[TupleRow], leases: ShardLeases, *, until: float) -> Assignment:
    alive, replay = rows[0][0], rows[0][1]
    owned = {shard: ShardLease(epoch, position) for _, _, shard, epoch, position, _ in rows if shard is not None}
    fair = -(-leases.shards // alive)
    renewed = all(row[5] is not False for row in rows)
    return Assignment(owned, frozenset(sorted(owned)[fair:]), until if renewed else 0.0, alive, replay)


class Member(Protocol):
    """A member whose leases a keeper renews."""

    def renewal(self) -> Renewal | None:
        """Return what to ask for; None to let the leases end."""
        ...

    def renewed(self, assignment: Assignment) -> None:
        """Take note of the leases."""
        ...


class LeaseKeeper(BackgroundTask):
    """Renews the leases of all members of a process, with one statement about three times in the duration of the shortest lease. It
    runs while it has members."""

    WHAT: ClassVar[str] = "leases"

    def __init__(self, database: Database) -> None:
        self._database = database
        self._members: dict[Member, float] = {}
        self._delayed: dict[Member, asyncio.Task[None]] = {}
        self._hurried = asyncio.Event()

    async def add(self, member: Member, *, lease: float) -> None:
        """Renew the leases of a member from now on."""
        self._members[member] = lease
        self.hurry()
        if len(self._members) == 1:
            await self.start()

    async def remove(self, member: Member) -> None:
        if self._members.pop(member, None) is not None and not self._members:
            await self.stop()

    async def stop(self) -> None:
        await super().stop()
        for task in self._delayed.values():
            task.cancel()

    def hurry(self) -> None:
        """Renew all leases soon, because a member needs shards or has lost some."""
        self._hurried.set()

    async def renew(self) -> None:
        """Renew the leases once. A member with a shard that a transaction has locked is renewed in a separate task, which waits for
        the end of that transaction."""
        members = [member for member in self._members if member not in self._delayed]
        for member in await self._renew(members, wait=False):
            self._delayed[member] = start_task(self._renew_delayed(member), what=self.WHAT)

    async def _renew(self, members: Sequence[Member], *, wait: bool) -> Sequence[Member]:
        """Renew the leases of these members, and return those with a locked shard."""
        asked = [(member, renewal) for member in members if (renewal := member.renewal()) is not None]
        assignments = await renew(self._database, [renewal for _, renewal in asked], wait=wait) if asked else ()
        results = [(member, assignment) for (member, _), assignment in zip(asked, assignments, strict=True)]
        for member, assignment in results:
            if member in self._members and assignment.until:
                member.renewed(assignment)
        return [member for member, assignment in results if not assignment.until]

    async def _renew_delayed(self, member: Member) -> None:
        try:
            with suppress(*TRANSIENT):
                await self._renew([member], wait=True)
        finally:
            del self._delayed[member]

    async def _turn(self) -> None:
        self._hurried.clear()
        await self.renew()
        with suppress(TimeoutError):
            async with asyncio.timeout(min(self._members.values(), default=LEASE) / 3):
                await self._hurried.wait()
        await asyncio.sleep(PAUSE)


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
        keeper: LeaseKeeper | None = None,
    ) -> None:
        """`keeper` renews all leases of the process; without it these leases have their own."""
        self.keeper = keeper or LeaseKeeper(database)
        self.database = database
        self.consumer = consumer
        self.shards = shards
        self.member = member
        self.lease = lease
        self.host = host
        self._first = 0 if reads_log else None

    @property
    def timeline(self) -> int:
        """The timeline of the primary that stores the leases."""
        return self.database.timeline

    async def start(self) -> None:
        await self.database.execute(_MAKE, (self.consumer, self.shards, self._first))

    async def release(self, shards: Iterable[int]) -> None:
        """Free shards for other members. No work may be in progress for them."""
        await self.database.execute(_RELEASE, (self.consumer, self.member, bigints(list(shards))))

    async def leave(self) -> None:
        """Release all shards and remove the member."""
        await self.release(range(self.shards))
        await self.database.execute(_LEAVE, (self.consumer, self.member))

    async def advance(self, connection: AsyncConnection[TupleRow], leases: Mapping[int, ShardLease], *, through: int) -> None:
        """Move the checkpoint of these shards, in the caller's transaction. Raise `LeaseLost` if another member owns one now; the
        transaction must then be rolled back."""
        epochs = [lease.epoch for lease in leases.values()]
        moved = await connection.execute(
            _ADVANCE, (through, bigints(list(leases)), bigints(epochs), self.consumer, self.member), binary=True
        )
        if not leases or moved.rowcount != len(leases):
            raise LeaseLost(self.consumer)


def shard_of(key: str, shards: int) -> int:
    """Return the shard of an aggregate by its id. It is the same for both transports."""
    return crc32(key.encode()) % shards

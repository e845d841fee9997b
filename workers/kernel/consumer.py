"""A consumer: reads a feed and writes the effects that its handler computes, together with its checkpoint.

Effects and checkpoint are one transaction, fenced by the epochs of its leases. Therefore a repeat from the feed is skipped, a crash
loses nothing, and a process that was frozen past its lease writes nothing. A record that the handler cannot process is parked with
the error, and never stops the others. A record whose topic this version does not know is not parked: a newer member takes over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from pydantic import ValidationError

from domain.kernel.errors import Unavailable
from domain.kernel.mapper import UnknownTopic
from projections.consumers.leases import Assignment, LeaseLost, MemberState, ShardLease, ShardLeases
from projections.consumers.parked_records import ParkedRecords, park, stop_replay, unpark
from projections.kernel.background_task import TRANSIENT, OperatorNeeded
from projections.kernel.database.database import Database, unavailable
from projections.kernel.tracing import UNTRACED, Tracer, trace_parents
from projections.log import reader
from projections.log.reader import LoggedEvent
from projections.log.transactions import writes
from workers.kernel.feed import LIMIT, Batch, ConsumerFeed
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.log_feed import MOST_BYTES
from workers.kernel.wakeups import Waker

_log = logging.getLogger(__name__)
E = TypeVar("E")
T = TypeVar("T")
_PATIENCE = 6
"""The number of leases for which a member that only fails keeps its shards."""
_REPLAYED = 500
_BEHIND = "waits for a parked record of the same aggregate"
_STATEMENT = 30.0
_SESSION = (("idle_in_transaction_session_timeout", "5s"),)
"""Settings of the connection. The server ends a process that is frozen within its transaction, so that its shards do not stay
locked."""


class Handler(Protocol[E]):
    """Computes and writes the effects of records. `topics` are the topics of the events that it receives, or kinds of aggregates
    for all of their events; None for everything."""

    @property
    def topics(self) -> frozenset[str] | None: ...

    async def begin(self, position: int) -> None:
        """Set up the state in memory as of this position. It is called at the start, and after every fault or lost shard."""
        ...

    async def prepare(self, records: Sequence[LoggedEvent]) -> E | None:
        """Return the effects of these records, which are whole writes in the order of the log; None if there are none. A call that
        raises `Unavailable` is repeated. Any other error means that a record cannot be processed: then `begin` is called, and every
        write is tried separately."""
        ...

    async def write(self, connection: AsyncConnection[TupleRow], effects: E) -> None:
        """Write the effects, in the transaction that moves the checkpoint."""
        ...

    def wrote(self, effects: E) -> None:
        """React to effects that are committed."""
        ...


class Consumer(LeasedWorker, Generic[E]):
    """Runs one handler. A consumer of the log has a single shard, so one member is active and the others stand by."""

    def __init__(
        self,
        database: Database,
        leases: ShardLeases,
        *,
        feed: ConsumerFeed,
        handler: Handler[E],
        cadence: float = 0.0,
        limit: int = LIMIT,
        tracer: Tracer = UNTRACED,
    ) -> None:
        """`cadence` is the least number of seconds between two pages, unless a page is full; it has `limit` records."""
        super().__init__(leases, Waker())
        self._tracer = tracer
        self._database = database
        self._feed = feed
        self._handler = handler
        self._parked = ParkedRecords(database)
        self._behind: set[str] = set()
        self._position: int | None = None
        self._requested: datetime | None = None
        self._limit = self._most = limit
        self._cadence = cadence
        self._rests_until = 0.0
        self._connection: AsyncConnection[TupleRow] | None = None

    def _wake(self) -> None:
        super()._wake()
        self._feed.interrupt()

    async def stop(self) -> None:
        await super().stop()
        await self._feed.close()
        if self._connection is not None:
            await self._connection.close()

    @property
    def _state(self) -> MemberState:
        return replace(super()._state, reads_log_since=self._feed.reads_log_since)

    async def _turn(self) -> None:
        try:
            await self._read_on()
        except LeaseLost:
            self._limit = max(self._limit // 2, 1)
            _log.warning("%s: a shard was lost to another process; continuing with the remaining ones", self.name)
            self._forget_leases()
        except UnknownTopic as unknown:
            self._forget_leases()
            await self._give_way()
            raise OperatorNeeded(
                f"{unknown.args[0]} is not known to this version; a newer one must take over, so the shards are released"
            ) from unknown
        except Exception:
            self._forget_leases()
            if self._fault is not None and time.monotonic() - self._fault.since > _PATIENCE * self._leases.lease:
                await self._give_way()
            raise

    async def _give_way(self) -> None:
        """Leave the shards to another member, if there is one, for the duration of a lease."""
        with suppress(*TRANSIENT):
            self._away = True
            await self._leases.leave()
            until = time.monotonic() + self._leases.lease
            while not self._stopping and (rest := until - time.monotonic()) > 0:
                await self._waker.sleep(rest)

    async def _finish(self) -> None:
        with suppress(LeaseLost, *TRANSIENT):
            await self._checkpoint()

    def _forget_leases(self) -> None:
        super()._forget_leases()
        self._position = None

    async def _read_on(self) -> None:
        await self._renew()
        if self._position is None:
            await self._wait(self._waker.sleep(self._leases.lease))
            return
        if self._assignment.replay:
            await self._replay()
            self._assignment = replace(self._assignment, replay=False)
        if (rest := self._rests_until - time.monotonic()) > 0:
            await self._wait(self._waker.sleep(rest))
            self._rests_until = 0.0
            return
        batch = await self._wait(self._feed.fetch(self._position, limit=self._limit))
        self._check_primary()
        if batch.through > self._position:
            await self._take(batch)
            if len(batch.records) < self._limit:
                self._rests_until = time.monotonic() + self._cadence
            self._limit = min(2 * self._limit, self._most)

    async def _wait(self, wait: Coroutine[Any, Any, T]) -> T:
        """Wait for something, which may take longer than a turn that works."""
        self._begun = float("inf")
        try:
            return await wait
        finally:
            self._begun = time.monotonic()

    async def _apply_assignment(self, assignment: Assignment) -> None:
        """Adopt the new assignment: begin at its checkpoint if the shard is new here, or was lost and regained."""
        old, new = self._assignment.leases.get(0), assignment.leases.get(0)
        if new is None:
            self._position = None
            return
        if old is not None and new.epoch > old.epoch:
            self._limit = max(self._limit // 2, 1)
        elif old is not None and new.position < old.position:
            _log.warning("%s: its checkpoint has gone back: the database was restored; restarting from there", self.name)
        elif old is not None:
            return
        self._position = new.position
        await self._begin(new.position)

    async def _begin(self, position: int) -> None:
        head = await reader.head(self._database)
        if position > head:
            raise OperatorNeeded(
                f"its checkpoint is {position}, but the log ends at {head}: the database lost events, or was restored in part. "
                "Nothing is done until you run `medialedger restored`"
            )
        self._feed.restart(head)
        self._behind = await self._parked.streams(self.name)
        await self._handler.begin(position)

    async def _take(self, batch: Batch) -> None:
        records: Sequence[LoggedEvent] = batch.records
        behind: Sequence[LoggedEvent] = ()
        if self._behind:
            records = [record for record in batch.records if record.stream not in self._behind]
            behind = [record for record in batch.records if record.stream in self._behind]
        try:
            await self._carry_out(records, through=batch.through, behind=behind)
        except (LeaseLost, *TRANSIENT):
            raise
        except Exception as fault:
            _log.warning("%s: a record cannot be processed: %s", self.name, _description(fault))
            await self._handler.begin(self._position or 0)
            for write in writes(batch.records):
                await self._take_alone(write)
            self._position = batch.through

    async def _take_alone(self, write: Sequence[LoggedEvent]) -> None:
        through = write[-1].position
        records = [record for record in write if record.stream not in self._behind]
        behind = [record for record in write if record.stream in self._behind]
        try:
            await self._carry_out(records, through=through, behind=behind)
        except (LeaseLost, UnknownTopic, *TRANSIENT):
            raise
        except Exception as fault:
            async with self._transaction() as connection:
                errors = [_description(fault)] * len(records) + [_BEHIND] * len(behind)
                await park(connection, self.name, records=[*records, *behind], errors=errors)
                await self._leases.advance(connection, self._assignment.leases, through=through)
            self._advance_to(through)
            self._behind.update(record.stream for record in records)
            await self._handler.begin(through)

    async def _carry_out(self, records: Sequence[LoggedEvent], *, through: int, behind: Sequence[LoggedEvent] = ()) -> None:
        begun = time.time_ns()
        effects = await self._handler.prepare(records) if records else None
        if effects is None and not behind:
            self._position = through
            return
        async with self._transaction() as connection:
            if effects is not None:
                await self._handler.write(connection, effects)
            if behind:
                await park(connection, self.name, records=behind, errors=[_BEHIND] * len(behind))
            await self._leases.advance(connection, self._assignment.leases, through=through)
        self._advance_to(through)
        if effects is not None:
            self._handler.wrote(effects)
            if self._tracer.on:
                self._tracer.consumed(self.name, trace_parents(record.metadata for record in records), since=begun)

    async def _replay(self) -> None:
        """Replay the requested parked records: by position, all of them, before anything else is read. If one write fails, the
        later ones of its aggregates wait."""
        after, failed = 0, set[str]()
        while (page := await self._parked_writes(after)) is not None:
            for write in page:
                after = write[-1].position
                streams = {record.stream for record in write}
                if streams & failed or not await self._try_again(write):
                    failed |= streams
        if after:
            async with self._transaction() as connection:
                await stop_replay(connection, self.name, streams=failed, requested=self._requested)
            self._behind = await self._parked.streams(self.name)

    async def _parked_writes(self, after: int) -> Sequence[Sequence[LoggedEvent]] | None:
        """Return some of the whole writes that are to be retried; None if there are no more."""
        limit, most = _REPLAYED, MOST_BYTES
        while True:
            parked, complete = await self._parked.to_replay(self.name, after=after, limit=limit, most=most)
            if not after:
                self._requested = max((requested for _, _, requested in parked if requested is not None), default=None)
            positions = [position for position, _, _ in parked]
            complete_writes = list(writes(await reader.at(self._database, positions)))
            if complete:
                return complete_writes or None
            if len(complete_writes) > 1:
                return complete_writes[:-1]
            limit, most = 2 * limit, 2 * most

    async def _try_again(self, write: Sequence[LoggedEvent]) -> bool:
        effects: E | None = None
        try:
            effects = await self._handler.prepare(write)
            async with self._transaction() as connection:
                if effects is not None:
                    await self._handler.write(connection, effects)
                await unpark(connection, self.name, positions=[record.position for record in write])
                await self._leases.advance(connection, self._assignment.leases, through=0)
        except (LeaseLost, *TRANSIENT):
            raise
        except Exception as fault:
            async with self._transaction() as connection:
                errors = [_description(fault)] * len(write)
                await park(connection, self.name, records=write, errors=errors, requested=self._requested)
            await self._handler.begin(self._position or 0)
            return False
        if effects is not None:
            self._handler.wrote(effects)
        return True

    def _check_primary(self) -> None:
        """Raise `Unavailable` after a promotion: the new primary may assign positions that were read to other events."""
        if self._timeline != self._leases.timeline:
            raise Unavailable("the database has another primary")

    @property
    def _progress(self) -> tuple[int, int] | None:
        """Everything up to the position was processed, or has no effects here: the keeper stores it with the leases."""
        lease = self._assignment.leases.get(0)
        if lease is None or self._position is None or self._timeline != self._leases.timeline:
            return None
        position = max(self._position, self._feed.passed if self._begun == float("inf") else 0)
        return (lease.epoch, position) if position > lease.position else None

    async def _checkpoint(self) -> None:
        """Store the position up to which records without effects were read."""
        lease = self._assignment.leases.get(0)
        if self._position is not None and lease is not None and self._position > lease.position:
            async with self._transaction() as connection:
                await self._leases.advance(connection, self._assignment.leases, through=self._position)
            self._advance_to(self._position)

    def _advance_to(self, through: int) -> None:
        self._position = max(self._position or 0, through)
        saved = {shard: ShardLease(lease.epoch, max(lease.position, through)) for shard, lease in self._assignment.leases.items()}
        self._assignment = replace(self._assignment, leases=saved)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """Open a transaction on a connection of this consumer. It waits for the disk: other members act on the effects as soon as
        they see them, in order, and effects that were undone by a crash of the database and written again would have positions
        before those they have read."""
        with unavailable():
            if self._connection is None or self._connection.closed:
                self._connection = await self._database.connect(f"consumer {self.name}", seconds=_STATEMENT, settings=_SESSION)
            self._check_primary()
            async with self._connection.transaction():
                yield self._connection


def _description(fault: Exception) -> str:
    """Describe a fault. For a decoding error, name only the place and the reason, never the data."""
    if isinstance(fault, ValidationError):
        return "; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in fault.errors(include_input=False))
    return f"{type(fault).__name__}: {fault}"

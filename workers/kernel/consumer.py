"""A consumer: reads a feed, has a policy say what follows from it, and writes that down together with how far it has come.

Effects and checkpoint are one transaction, fenced by the epochs of the shares that it is for. So a repeat from the feed is passed
over, a crash loses nothing, and a process that was frozen past its lease writes nothing. A record that the policy cannot take in is
parked, with the error, and never stops the others.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Generic, Protocol, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from pydantic import ValidationError

from domain.kernel.errors import Unavailable
from projections.consumers.parked import Parked, park, unpark
from projections.consumers.shares import NOTHING, Fenced, Holding, Share, Shares, shard_of
from projections.kernel.database import Database, unavailable
from projections.log import tail
from projections.log.tail import LoggedEvent
from projections.log.writes import writes
from workers.kernel.feed import Batch, Feed

_log = logging.getLogger(__name__)
E = TypeVar("E")
_LATER = Unavailable, psycopg.OperationalError, TimeoutError
_PAUSE = 0.5
_LAZILY = 1.0
_BEHIND = "waits for a parked record of the same aggregate"
_SESSION = (("statement_timeout", "30s"), ("idle_in_transaction_session_timeout", "5s"))
"""A process that is frozen within its transaction must not keep its shards locked: the server ends it."""


class Handler(Protocol[E]):
    """What a consumer does with records. `kinds` are the aggregates whose events it wants, None for all."""

    @property
    def kinds(self) -> frozenset[str] | None: ...

    async def begin(self, position: int) -> None:
        """Set up what is kept in memory as it was at this position. Called at the start, and after every fault or lost share."""
        ...

    async def prepare(self, records: Sequence[LoggedEvent]) -> E | None:
        """What follows from these records, whole writes in the log's order; None when nothing does. `Unavailable` is tried again;
        any other error means that a record cannot be taken in: then `begin` is called, and every write is tried for itself."""
        ...

    async def write(self, connection: AsyncConnection[TupleRow], effects: E) -> None:
        """Write the effects, in the transaction that moves the checkpoint."""
        ...

    def wrote(self, effects: E) -> None:
        """The effects are committed."""
        ...


class Consumer(Generic[E]):
    """Runs one handler over the shards that this member holds."""

    def __init__(self, database: Database, shares: Shares, *, feed: Feed, handler: Handler[E]) -> None:
        self._database = database
        self._shares = shares
        self._feed = feed
        self._handler = handler
        self._parked = Parked(database)
        self._behind: set[str] = set()
        self._holding: Holding = NOTHING
        self._positions: dict[int, int] = {}
        self._renewed = self._saved = float("-inf")
        self._connection: AsyncConnection[TupleRow] | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._trouble = ""

    @property
    def name(self) -> str:
        return self._shares.consumer

    async def start(self) -> None:
        await self._shares.start()
        self._task = asyncio.create_task(self._run(), name=f"consumer {self.name}")

    async def stop(self) -> None:
        """Finish the batch under way and let others go on."""
        self._stopping = True
        if self._task is not None:
            await self._task
        with suppress(*_LATER):
            await self._save()
            await self._shares.leave()
        await self._feed.close()
        if self._connection is not None:
            await self._connection.close()

    async def _run(self) -> None:
        while not self._stopping:
            try:
                await self._round()
                self._recovered()
            except Fenced:
                _log.warning("%s: a share was lost to another process; going on with what is held", self.name)
                self._forget()
            except _LATER as fault:
                self._complain(str(fault))
                self._forget()
                await asyncio.sleep(_PAUSE)
            except Exception:
                _log.exception("%s: failed; trying again", self.name)
                self._forget()
                await asyncio.sleep(_PAUSE)

    def _complain(self, of: str) -> None:
        """Once for every trouble, however often it is met."""
        if of != self._trouble:
            _log.warning("%s: %s; trying again until it works", self.name, of)
            self._trouble = of

    def _recovered(self) -> None:
        if self._trouble:
            _log.info("%s: works again", self.name)
            self._trouble = ""

    def _forget(self) -> None:
        self._holding = NOTHING
        self._positions = {}
        self._renewed = float("-inf")

    async def _round(self) -> None:
        await self._hold()
        if not self._positions:
            await asyncio.sleep(self._shares.lease / 10)
            return
        batch = await self._feed.fetch(self._positions)
        if batch.through > min(self._positions.values()):
            await self._take(batch)

    async def _hold(self) -> None:
        """Three times within a lease; what it brings or takes away is put in order before anything else is read."""
        now = time.monotonic()
        if now - self._renewed < self._shares.lease / 3:
            return
        await self._save()
        held = await self._shares.hold()
        if held.surplus:
            await self._shares.release(held.surplus)
        shares = {shard: share for shard, share in held.shares.items() if shard not in held.surplus}
        if _epochs(shares) != _epochs(self._holding.shares):
            self._positions = {shard: share.position for shard, share in shares.items()}
            await self._begin()
        self._holding = Holding(shares, until=held.until)
        self._renewed = now
        if self._positions:
            await self._replay()

    async def _begin(self) -> None:
        if self._positions:
            self._behind = await self._parked.streams(self.name)
            await self._handler.begin(min(self._positions.values()))

    async def _take(self, batch: Batch) -> None:
        records: Sequence[LoggedEvent] = batch.records
        behind: Sequence[LoggedEvent] = ()
        if self._behind:
            records = [record for record in batch.records if record.stream not in self._behind]
            behind = [record for record in batch.records if record.stream in self._behind]
        try:
            await self._carry_out(records, through=batch.through, behind=behind)
        except (Fenced, *_LATER):
            raise
        except Exception as fault:
            _log.warning("%s: a record cannot be taken in: %s", self.name, _told(fault))
            await self._handler.begin(min(self._positions.values()))
            for write in writes(batch.records):
                await self._take_alone(write)
            self._positions = self._past(batch.through)

    async def _take_alone(self, write: Sequence[LoggedEvent]) -> None:
        through = write[-1].position
        if any(record.stream in self._behind for record in write):
            await self._carry_out((), through=through, behind=write)
            return
        try:
            await self._carry_out(write, through=through)
        except (Fenced, *_LATER):
            raise
        except Exception as fault:
            async with self._transaction() as connection:
                await park(connection, self.name, records=write, errors=[_told(fault)] * len(write))
                await self._shares.advance(connection, self._holding.shares, through=through)
            self._moved(through)
            self._behind.update(record.stream for record in write)
            await self._handler.begin(through)

    async def _carry_out(self, records: Sequence[LoggedEvent], *, through: int, behind: Sequence[LoggedEvent] = ()) -> None:
        effects = await self._handler.prepare(records) if records else None
        if effects is None and not behind and time.monotonic() - self._saved < _LAZILY:
            self._positions = self._past(through)
            return
        async with self._transaction() as connection:
            if effects is not None:
                await self._handler.write(connection, effects)
            if behind:
                await park(connection, self.name, records=behind, errors=[_BEHIND] * len(behind))
            await self._shares.advance(connection, self._holding.shares, through=through)
        self._moved(through)
        if effects is not None:
            self._handler.wrote(effects)

    async def _replay(self) -> None:
        """What somebody has asked for, of the shards that are held."""
        wanted = await self._parked.wanted(self.name)
        held = [position for position, stream in wanted if self._is_ours(stream)]
        if not held:
            return
        for write in writes(await tail.at(self._database, held)):
            await self._try_again(write)
        self._behind = await self._parked.streams(self.name)

    async def _try_again(self, write: Sequence[LoggedEvent]) -> None:
        effects: E | None = None
        try:
            effects = await self._handler.prepare(write)
            async with self._transaction() as connection:
                if effects is not None:
                    await self._handler.write(connection, effects)
                await unpark(connection, self.name, positions=[record.position for record in write])
                await self._shares.advance(connection, self._holding.shares, through=0)
        except (Fenced, *_LATER):
            raise
        except Exception as fault:
            async with self._transaction() as connection:
                await park(connection, self.name, records=write, errors=[_told(fault)] * len(write))
            await self._begin()
        if effects is not None:
            self._handler.wrote(effects)

    def _is_ours(self, stream: str) -> bool:
        return shard_of(stream.partition(":")[2], self._shares.shards) in self._positions

    async def _save(self) -> None:
        """Write down how far we have come without effects."""
        if self._positions and any(self._positions[shard] > share.position for shard, share in self._holding.shares.items()):
            through = min(self._positions.values())
            async with self._transaction() as connection:
                await self._shares.advance(connection, self._holding.shares, through=through)
            self._moved(through)

    def _moved(self, through: int) -> None:
        self._positions = self._past(through)
        saved = {shard: Share(share.epoch, max(share.position, through)) for shard, share in self._holding.shares.items()}
        self._holding = Holding(saved, until=self._holding.until)
        self._saved = time.monotonic()

    def _past(self, through: int) -> dict[int, int]:
        return {shard: max(position, through) for shard, position in self._positions.items()}

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """On a connection of our own. It waits for the disk: others act on the effects as soon as they see them, in order, and what
        a crash of the database undid and we did again would lie behind what they have read."""
        with unavailable():
            if self._connection is None or self._connection.closed:
                self._connection = await self._database.connect(f"consumer {self.name}", settings=_SESSION)
            async with self._connection.transaction():
                yield self._connection


def _epochs(shares: Mapping[int, Share]) -> dict[int, int]:
    return {shard: share.epoch for shard, share in shares.items()}


def _told(fault: Exception) -> str:
    """Of a decoding error only where and what, never the data."""
    if isinstance(fault, ValidationError):
        return "; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in fault.errors(include_input=False))
    return f"{type(fault).__name__}: {fault}"

"""A handler that stores every record in the consumer's transaction, and can be made to fail or to wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from uuid import uuid4

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from api.wiring.core import Core
from domain.kernel.errors import Unavailable
from projections.consumers.leases import LeaseKeeper, ShardLeases
from projections.log.log_watcher import LogWatcher
from projections.log.reader import LoggedEvent
from tests.contract.feed.transports import KINDS, Transport
from workers.kernel.consumer import Consumer
from workers.kernel.log_reader import LogReader


class Notebook:
    topics = frozenset(KINDS)

    def __init__(self) -> None:
        self.poison: set[str] = set()
        self.poison_at: set[int] = set()
        self.down = False
        self.down_after_writing = 0
        self.writing_stops: asyncio.Event | None = None
        self.held_up = asyncio.Event()
        self.commit_waits: asyncio.Event | None = None
        self.begun: list[int] = []
        self.before_it_fails: Callable[[], Awaitable[object]] | None = None

    async def begin(self, position: int) -> None:
        self.begun.append(position)

    async def prepare(self, records: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
        if self.down:
            raise Unavailable("the handler's own dependency is down")
        for record in records:
            if record.stream in self.poison or record.position in self.poison_at:
                act, self.before_it_fails = self.before_it_fails, None
                if act is not None:
                    await act()
                raise ValueError("cannot be taken in")
        if self.writing_stops is not None:
            self.held_up.set()
            await self.writing_stops.wait()
        return records

    async def write(self, connection: AsyncConnection[TupleRow], effects: Sequence[LoggedEvent]) -> None:
        for record in effects:
            await connection.execute(
                "INSERT INTO test_effects (position, stream, through) VALUES (%s, %s, %s)",
                (record.position, record.stream, effects[-1].position),
            )
        if self.commit_waits is not None:
            self.held_up.set()
            await self.commit_waits.wait()
        if self.down_after_writing:
            self.down_after_writing -= 1
            raise Unavailable("cut off before the commit")

    def wrote(self, effects: Sequence[LoggedEvent]) -> None:
        """Do nothing, because no caller waits."""


class _Frozen(LeaseKeeper):
    """The keeper of a process that is frozen as a whole while its handler is held up."""

    def __init__(self, inner: Core, notebook: Notebook) -> None:
        super().__init__(inner.database)
        self._notebook = notebook

    async def renew(self) -> None:
        until = self._notebook.writing_stops or self._notebook.commit_waits
        if until is not None and self._notebook.held_up.is_set():
            await until.wait()
        await super().renew()


@asynccontextmanager
async def consuming(
    inner: Core,
    transport: Transport,
    notebook: Notebook,
    *,
    lease: float = 30.0,
    limit: int = 1000,
    frozen: bool = False,
) -> AsyncIterator[Consumer[Sequence[LoggedEvent]]]:
    reader = LogReader(inner.database, LogWatcher(inner.database), source=lambda: transport.feed(kinds=KINDS, limit=limit))
    keeper = _Frozen(inner, notebook) if frozen else None
    share = ShardLeases(inner.database, "notebook", shards=1, member=uuid4(), lease=lease, keeper=keeper)
    consumer = Consumer(inner.database, share, feed=reader.feed(notebook.topics), handler=notebook)
    await reader.start()
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()
        await reader.stop()

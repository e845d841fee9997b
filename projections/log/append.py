"""Group commit: all commands that arrived while the last commit was under way go into the next one, as one statement.

The statement is autocommit and needs no second round trip, so nothing a client does, not even being frozen, can hold the head row.
Each command is all or nothing. When the batch as a whole is refused (a stale version, a taken claim), it is run again command by
command: the loser hears of it, its neighbours do not.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.kernel.errors import ClaimTaken, ConcurrencyConflict, LinkBroken, Unavailable
from domain.kernel.idempotency import IdempotencyKeyUsed
from projections.kernel.database import Database
from projections.log.statement import WriteSet, statement

_log = logging.getLogger(__name__)
_SESSION = (("statement_timeout", "10s"), ("lock_timeout", "10s"))
_DURABLE = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""  # whatever the server's default: what is acknowledged is on disk
_LOST = (psycopg.OperationalError, psycopg.InterfaceError)
_SETTLE_TRIES = 3


@dataclass(slots=True)
class _Waiting:
    append: WriteSet
    committed: asyncio.Future[int]
    since: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the queue: rows per statement, waiting commands, seconds that the oldest may have waited, and seconds after
    which a silent connection is closed (the server itself gives up sooner)."""

    batch: int = 512
    waiting: int = 10_000
    age: float = 5.0
    patience: float = 15.0


class Appender:
    """The one writer of this process. Other processes have their own; the head row orders them all."""

    def __init__(
        self,
        database: Database,
        *,
        limits: Limits = Limits(),
        observe: Callable[[int, float], None] | None = None,
        announce: Callable[[int], None] | None = None,
    ) -> None:
        self._database = database
        self._limits = limits
        self._observe = observe
        self._announce = announce
        self._queue: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._connection: AsyncConnection[TupleRow] | None = None
        self._stopping = False
        self._loop: asyncio.AbstractEventLoop

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()  # asked for once: Python 3.11 makes a system call of it
        self._connection = await self._connect()
        self._task = asyncio.create_task(self._run(), name="appender")

    async def stop(self) -> None:
        """Commit the accepted commands, then stop."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await self._task
        if self._connection is not None:
            await self._connection.close()

    @property
    def oldest(self) -> float:
        """Seconds that the oldest waiting command has waited; 0 when none does."""
        return time.monotonic() - self._queue[0].since if self._queue else 0.0

    async def append(self, append: WriteSet) -> int:
        """Commit; the position of the command's last event."""
        if self._stopping or len(self._queue) >= self._limits.waiting or self.oldest > self._limits.age:
            raise Unavailable("too many changes are waiting to be written")
        waiting = _Waiting(append, self._loop.create_future())
        self._queue.append(waiting)
        self._wake.set()
        return await waiting.committed

    async def _run(self) -> None:
        while True:
            if not self._queue:
                if self._stopping:
                    return
                self._wake.clear()
                await self._wake.wait()
                continue
            batch = self._take()
            try:
                await self._write(batch)
            except BaseException as fault:
                for waiting in batch:
                    _fail(waiting, fault if isinstance(fault, Exception) else Unavailable("shutting down"))
                if not isinstance(fault, Exception):
                    raise
                _log.exception("a batch of %d commands was not written", len(batch))

    def _take(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        size = 0
        while self._queue and (not batch or size + len(self._queue[0].append.events) <= self._limits.batch):
            waiting = self._queue.popleft()
            size += len(waiting.append.events)
            batch.append(waiting)
        if self._observe is not None:
            self._observe(size, time.monotonic() - batch[0].since)
        return batch

    async def _write(self, batch: list[_Waiting]) -> None:
        if len(batch) == 1:
            await self._write_alone(batch[0])
            return
        try:
            last = await self._execute([waiting.append for waiting in batch])
        except psycopg.errors.QueryCanceled:
            for waiting in batch:
                _fail(waiting, Unavailable("the database is too busy"))
        except Exception as fault:
            if isinstance(fault, _LOST) and not self._connected():
                _log.warning("the connection to the log broke: %s", type(fault).__name__)
                await self._settle(batch)
                return
            for waiting in batch:
                await self._write_alone(waiting)
        else:
            self._succeed(batch, last)

    async def _write_alone(self, waiting: _Waiting) -> None:
        try:
            await self._try(waiting)
        except _LOST as fault:
            _log.warning("the connection to the log broke: %s", type(fault).__name__)
            await self._settle([waiting])

    async def _try(self, waiting: _Waiting, *, doubted: bool = False) -> None:
        """Write one command; `doubted`: unless it is there already. Raises only errors of a lost connection."""
        try:
            if doubted and (position := await self._position_of(waiting.append)):
                _settle(waiting, position)
                return
            last = await self._execute([waiting.append])
        except psycopg.errors.ForeignKeyViolation:
            _fail(waiting, LinkBroken(waiting.append.no_longer_linkable))
        except psycopg.errors.UniqueViolation as violation:
            await self._refuse(waiting, violation.diag.constraint_name)
        except psycopg.errors.QueryCanceled:
            _fail(waiting, Unavailable("the database is too busy"))
        except _LOST as fault:
            if not self._connected():
                raise
            _fail(waiting, _verdict(fault))
        except Exception as fault:
            _fail(waiting, fault)
        else:
            self._succeed([waiting], last)

    async def _refuse(self, waiting: _Waiting, constraint: str | None) -> None:
        append = waiting.append
        if constraint == "unique_claims_taken":
            _fail(waiting, ClaimTaken(append.claims))
        elif constraint == "idempotency_keys_used" and append.idempotency is not None:
            _fail(waiting, IdempotencyKeyUsed(append.idempotency.of.client, append.idempotency.of.key))
        elif position := await self._position_of(append):
            _settle(waiting, position)
        else:
            _fail(waiting, ConcurrencyConflict(append.events[0].stream))

    async def _settle(self, batch: Sequence[_Waiting]) -> None:
        """After a lost connection it is unknown what was committed. Look in the log for the event of each command; write those that
        are missing. When the connection is lost again, the rest is tried again."""
        left = deque(batch)
        for _ in range(_SETTLE_TRIES):
            await self._reconnect()
            try:
                while left:
                    await self._try(left[0], doubted=True)
                    left.popleft()
            except _LOST as fault:
                _log.warning("the connection to the log broke again: %s", type(fault).__name__)
            else:
                return
        for waiting in left:
            _fail(waiting, Unavailable("the database does not answer"))

    async def _position_of(self, append: WriteSet) -> int | None:
        """The position of the command's last event if it is in the log: same stream, version and event id."""
        last = append.events[-1]
        found = await self._ask(
            "SELECT position FROM events WHERE originator_id = %s AND originator_version = %s AND event_id = %s",
            (last.stream, last.version, last.event_id),
        )
        return int(found[0]) if found else None

    async def _execute(self, appends: Sequence[WriteSet]) -> int:
        found = await self._ask(*statement(appends))
        return int(found[0]) if found else 0

    async def _ask(self, question: str, parameters: Sequence[Any]) -> TupleRow | None:
        connection = self._live()
        hang_up = self._loop.call_later(self._limits.patience, _hang_up, connection)
        try:
            cursor = await connection.execute(question, parameters, binary=True)
            return await cursor.fetchone()
        finally:
            hang_up.cancel()

    def _connected(self) -> bool:
        return self._connection is not None and not self._connection.closed

    def _live(self) -> AsyncConnection[TupleRow]:
        if self._connection is None or self._connection.closed:
            raise psycopg.OperationalError("not connected")
        return self._connection

    async def _connect(self) -> AsyncConnection[TupleRow]:
        connection = await self._database.connect("appender", settings=_SESSION)
        await connection.execute(_DURABLE)
        return connection

    async def _reconnect(self) -> None:
        if self._connection is not None:
            await self._connection.close()
        for delay in (0.0, 0.1, 0.3):
            await asyncio.sleep(delay)
            with suppress(psycopg.Error):
                self._connection = await self._connect()
                return

    def _succeed(self, batch: Sequence[_Waiting], last: int) -> None:
        position = last - sum(len(waiting.append.events) for waiting in batch)
        for waiting in batch:
            position += len(waiting.append.events)
            _settle(waiting, position)
        if self._announce is not None:
            self._announce(last)


def _verdict(fault: psycopg.Error) -> Exception:
    """The error for a statement that a running server refused: permanent for a limit, else `Unavailable`."""
    if isinstance(fault, psycopg.errors.ProgramLimitExceeded):
        return fault
    _log.warning("the database refuses to write: %s", type(fault).__name__)
    return Unavailable("the database cannot write at the moment")


def _hang_up(connection: AsyncConnection[TupleRow]) -> None:
    """Ends every wait on this connection: when the network drops packets, no error arrives by itself."""
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.fileno())) as twin:
        twin.shutdown(socket.SHUT_RDWR)


def _settle(waiting: _Waiting, position: int) -> None:
    if not waiting.committed.done():
        waiting.committed.set_result(position)


def _fail(waiting: _Waiting, fault: Exception) -> None:
    if not waiting.committed.done():
        waiting.committed.set_exception(fault)

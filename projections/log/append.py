"""Group commit: all commands that arrived while the last commit was in progress go into the next one, as one statement.

The statement runs in autocommit mode and needs no second round trip, so nothing that a client does, not even being frozen, can hold
the lock of the log. Each command is all or nothing. If the batch as a whole is refused (a stale version, a taken claim), one query
finds the refused commands (refusals.py), and all others are written in one commit.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.kernel.errors import ConcurrencyConflict, OutcomeUnknown, Unavailable
from projections.kernel.background_task import start_forever
from projections.kernel.database.arrays import register_records
from projections.kernel.database.availability import REMINDER
from projections.kernel.database.connection import Connection
from projections.kernel.database.database import Database, unavailable
from projections.kernel.schema.stored_views import StoredViews
from projections.log.append_queue import AppendLimits, AppendQueue, WaitingCommand
from projections.log.event_record import ELEMENT
from projections.log.partitions import MAKE_ROOM
from projections.log.refusals import independent, refusals
from projections.log.statement import WriteSet, statement

_log = logging.getLogger(__name__)
_SESSION = (("lock_timeout", "8s"),)
_DURABLE = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""  # regardless of the server's default, an acknowledged commit is on disk
_LOST = (psycopg.OperationalError, psycopg.InterfaceError)
_PREPARED = 300  # the text varies with the parts and views of a batch
_SETTLE_TRIES = 3
_SETTLE_SECONDS = 5.0
_AHEAD = 60.0
_WARY = 8
_MOST_RACES = 8
_VAULT_KEY = "vault_master_key"
"""The constraint that refuses a secret under a key that the database does not use (projections/vault/named_keys.sql)."""


class Appender:
    """The only writer of this process. Other processes have their own; the lock of the log orders them all."""

    def __init__(
        self,
        database: Database,
        *,
        limits: AppendLimits | None = None,
        observe: Callable[[int, float], None] | None = None,
        written: Callable[[float], None] | None = None,
        announce: Callable[[int], None] | None = None,
        views: StoredViews | None = None,
    ) -> None:
        self._database = database
        self._views = views
        self._limits = limits or AppendLimits()
        self._observe = observe
        self._written = written
        self._announce = announce
        self._queue = AppendQueue(self._limits)
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._connection: Connection | None = None
        self._stopping = False
        self.ahead = 0.0  # seconds by which the last recorded time is ahead of the database's clock
        self._latest: tuple[int, UUID] | None = None  # position and id of the last event that this process wrote
        self._refused = float("-inf")
        self._wary = 0  # remaining batches for which refused commands are searched for before the append
        self._loop: asyncio.AbstractEventLoop

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()  # looked up once, because Python 3.11 makes a system call for it
        self._connection = await self._connect()
        self._task = start_forever(self._write_next, what="appender", until=self._is_done)

    async def stop(self) -> None:
        """Commit the accepted commands, then stop."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await self._task
        if self._connection is not None:
            await self._connection.close()

    @property
    def timeline(self) -> int:
        """The timeline of the primary that receives the writes."""
        return self._database.timeline

    @property
    def oldest(self) -> float:
        """The number of seconds that the oldest waiting command has waited; 0 if the queue is empty."""
        return self._queue.oldest

    async def append(self, append: WriteSet) -> int:
        """Commit a write set, and return the position of its last event. Raise `Unavailable` if the queue is full or the appender
        is stopping."""
        size = append.size
        with unavailable():
            self._database.availability.check()
        if self._stopping or self._queue.full(size):
            raise Unavailable("too many changes are waiting to be written")
        command = WaitingCommand(append, self._loop.create_future(), size)
        self._queue.add(command)
        self._wake.set()
        return await command.committed

    def _is_done(self) -> bool:
        return self._stopping and not self._queue

    async def _write_next(self) -> None:
        if not self._queue:
            self._wake.clear()
            await self._wake.wait()
            return
        batch, begun = self._queue.take(), time.monotonic()
        try:
            if self._observe is not None:
                self._observe(sum(len(command.write_set.events) for command in batch), begun - batch[0].since)
            await self._write(batch)
            if self._written is not None:
                self._written(time.monotonic() - begun)
        except BaseException as fault:
            for command in batch:
                _fail(command, fault if isinstance(fault, Exception) else Unavailable("shutting down"))
            if not isinstance(fault, Exception):
                raise
            _log.exception("a batch of %d commands was not written", len(batch))

    async def _write(self, batch: list[WaitingCommand]) -> None:
        """Write a batch. If the log refused commands recently, the refused ones are searched for first, which costs less than a
        refusal."""
        self._wary = max(self._wary - 1, 0)
        try:
            await self._commit(batch, sift=self._wary > 0)
        except _LOST as fault:
            _log.warning("the connection to the log broke: %s", type(fault).__name__)
            await self._settle(batch)

    async def _commit(self, batch: Sequence[WaitingCommand], *, sift: bool) -> None:
        """Write commands, and fail those that the log refuses. If `sift` is set, search for these first. Raise if the connection is
        lost."""
        remaining, violations = list(batch), 0
        while remaining:
            now, later = remaining, list[WaitingCommand]()
            try:
                if sift:
                    now, later = await self._sift(remaining)
                if now := self._of_this_primary(now):
                    self._succeed(now, await self._execute(now))
            except (psycopg.errors.UniqueViolation, psycopg.errors.ForeignKeyViolation) as violation:
                violations += 1
                if violations < _MOST_RACES:
                    sift, later = True, [*now, *later]
                else:
                    await self._divide(now, violation)
            except psycopg.errors.ObjectNotInPrerequisiteState as missing:
                violations += 1
                if violations < _MOST_RACES:
                    _log.warning("%s: no partition was created in advance; creating one now", missing.diag.message_primary)
                    await self._rows(MAKE_ROOM, (None, sum(len(command.write_set.events) for command in batch)))
                    later = [*now, *later]
                else:
                    for command in now:
                        _fail(command, Unavailable("the log has no partition"))
            except (psycopg.errors.UndefinedObject, psycopg.errors.UndefinedTable) as fault:
                later = [*await self._drop_outdated(now, fault), *later]
            except psycopg.errors.DiskFull as fault:
                for command in now:
                    _fail(command, self._verdict(command.write_set, fault))
            except (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable):
                for command in now:
                    _fail(command, Unavailable("the database is too busy"))
            except Exception as fault:
                if isinstance(fault, _LOST) and not self._is_connected():
                    raise
                await self._divide(now, fault)
            remaining = later

    def _of_this_primary(self, batch: list[WaitingCommand]) -> list[WaitingCommand]:
        """Return the commands that were decided on the present primary, and close a connection to a former primary.

        The present primary may lack events that the other commands are based on, so these fail and are decided again.
        """
        if not self._is_connected():
            return batch
        live = self._live()
        live.check_primary()
        timeline = live.timeline
        for command in batch:
            if command.write_set.timeline not in (None, timeline):
                _fail(command, ConcurrencyConflict(command.write_set.events[0].stream))
        return [command for command in batch if command.write_set.timeline in (None, timeline)]

    async def _sift(self, batch: Sequence[WaitingCommand]) -> tuple[list[WaitingCommand], list[WaitingCommand]]:
        """Return the commands that the log does not refuse, and those that depend on others and are judged
        after them."""
        chosen = list(independent([command.write_set for command in batch]))
        now = [command for command, alone in zip(batch, chosen, strict=True) if alone]
        verdicts = await refusals(self._rows, [command.write_set for command in now])
        for number, verdict in verdicts.items():
            self._wary = _WARY
            if isinstance(verdict, int):
                _complete(now[number], verdict)
            else:
                _fail(now[number], verdict)
        accepted = [command for number, command in enumerate(now) if number not in verdicts]
        return accepted, [command for command, alone in zip(batch, chosen, strict=True) if not alone]

    async def _drop_outdated(self, batch: Sequence[WaitingCommand], fault: Exception) -> list[WaitingCommand]:
        """Return the commands whose view rows fit the present versions of the views. The others fail and are decided again."""
        if self._views is None:
            await self._divide(batch, fault)
            return []
        await self._views.refresh()
        writable = [command for command in batch if self._views.writes(command.write_set.rows)]
        if len(writable) == len(batch):
            await self._divide(batch, fault)
            return []
        for command in batch:
            if command not in writable:
                _fail(command, ConcurrencyConflict(command.write_set.events[0].stream))
        return writable

    async def _divide(self, batch: Sequence[WaitingCommand], fault: Exception) -> None:
        """Halve the batch until the refused command is alone. The reason for the refusal of a statement may concern a single
        command."""
        if len(batch) == 1:
            _fail(batch[0], self._verdict(batch[0].write_set, fault))
            return
        for half in (batch[: len(batch) // 2], batch[len(batch) // 2 :]):
            await self._commit(half, sift=False)

    def _verdict(self, append: WriteSet, fault: Exception) -> Exception:
        """Return the error for a command that a running server refused: a permanent error for an exceeded limit, else
        `Unavailable`.

        A full disk refuses all commands, so this is logged only once in a while.
        """
        if isinstance(fault, psycopg.errors.UniqueViolation | psycopg.errors.ForeignKeyViolation):
            return ConcurrencyConflict(append.events[0].stream)
        if isinstance(fault, psycopg.errors.CheckViolation) and fault.diag.constraint_name == _VAULT_KEY:
            _log.warning("%s; this process switches to another master key", fault.diag.message_primary)
            return Unavailable("the master key has been replaced; this process is switching to the new one", retry_after=5)
        if isinstance(fault, psycopg.errors.ProgramLimitExceeded) or not isinstance(fault, _LOST):
            return fault
        if time.monotonic() - self._refused >= REMINDER:
            self._refused = time.monotonic()
            _log.error("the database refuses to write: %s", str(fault).partition("\n")[0])
        return Unavailable("the database cannot write at the moment")

    async def _settle(self, batch: Sequence[WaitingCommand]) -> None:
        """Find out which commands of a batch were committed after the connection was lost, and write the missing ones.

        The log is queried for the event of each command. If the connection is lost again, the rest is retried, but not for long,
        since other commands wait behind it.
        """
        begun = time.monotonic()
        for _ in range(_SETTLE_TRIES):
            await self._reconnect()
            if time.monotonic() - begun > _SETTLE_SECONDS and not self._is_connected():
                break
            try:
                await self._commit([command for command in batch if not command.committed.done()], sift=True)
            except _LOST as fault:
                _log.warning("the connection to the log broke again: %s", type(fault).__name__)
            else:
                return
        for command in batch:
            _fail(command, OutcomeUnknown() if command.sent else Unavailable("the database does not answer"))

    async def _execute(self, batch: Sequence[WaitingCommand]) -> int:
        text, parameters = statement([command.write_set for command in batch])
        if self._is_connected():
            for command in batch:
                command.sent = True
        last, ahead = (await self._rows(text, parameters))[0]
        self._compare_clocks(ahead)
        return int(last)

    def _compare_clocks(self, ahead: float) -> None:
        """Log a warning if the recorded time is far ahead of the database's clock.

        Recorded times never run backwards: after the clock has leapt forwards and back, they stay constant until the clock has
        caught up.
        """
        if ahead > _AHEAD and self.ahead <= _AHEAD:
            _log.warning(
                "the log's recorded time is %.0f s ahead of the database's clock and stays constant until the clock catches up",
                ahead,
            )
        self.ahead = ahead

    async def _rows(self, question: str, parameters: Sequence[Any]) -> list[TupleRow]:
        cursor = await self._live().execute(question, parameters, binary=True)
        return await cursor.fetchall()

    def _is_connected(self) -> bool:
        return self._connection is not None and self._connection.idle

    def _live(self) -> Connection:
        if self._connection is None or not self._connection.idle:
            raise psycopg.OperationalError("not connected")
        return self._connection

    async def _connect(self) -> Connection:
        """Open the connection of the appender. The server limits the wait for the lock of the log, the client the wait for the
        answer. A standby may take longer."""
        connection = await self._database.connect("appender", seconds=None, settings=_SESSION)
        connection.patience = self._limits.patience
        await connection.execute(_DURABLE)
        connection.prepared_max = _PREPARED
        await send_events(connection)
        return connection

    async def _reconnect(self) -> None:
        if self._connection is not None:
            await self._connection.close()
        begun = time.monotonic()
        for delay in (0.0, 0.1, 0.3):
            await asyncio.sleep(delay)
            with suppress(psycopg.Error):
                before, self._connection = self._live_timeline(), await self._connect()
                if self._connection.timeline != before:
                    await self._compare_log()
                return
            if time.monotonic() - begun > 1:
                return  # the attempt was unanswered rather than refused, and so would be the next one

    def _live_timeline(self) -> int:
        return self._connection.timeline if self._connection is not None else 0

    async def _compare_log(self) -> None:
        """Check after a promotion that the log still holds the last event that this process wrote, and log an error otherwise."""
        if self._latest is None:
            return
        position, written = self._latest
        if [(written,)] != await self._rows("SELECT event_id FROM events WHERE position = %s", [position]):
            _log.error(
                "the new primary lacks the event at position %d: its log has lost events. Stop the API and the workers "
                "and run `medialedger restored`",
                position,
            )

    def _succeed(self, batch: Sequence[WaitingCommand], last: int) -> None:
        self._latest = last, batch[-1].write_set.events[-1].event_id
        position = last - sum(len(command.write_set.events) for command in batch)
        for command in batch:
            position += len(command.write_set.events)
            _complete(command, position)
        if self._announce is not None:
            self._announce(last)


async def send_events(connection: AsyncConnection[TupleRow]) -> None:
    """Configure a connection so that it can send the events of an append."""
    row = await (await connection.execute(ELEMENT)).fetchone()
    assert row is not None, "a SELECT without FROM gives one row"
    register_records(connection, row[0])


def _complete(command: WaitingCommand, position: int) -> None:
    if not command.committed.done():
        command.committed.set_result(position)


def _fail(command: WaitingCommand, fault: Exception) -> None:
    if not command.committed.done():
        command.committed.set_exception(fault)

"""Helpers for tests of the log: rows to append, a wire to the database that can be cut at the worst moment, and waiting."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from api.wiring.core import Core
from domain.kernel.aggregate import Claim
from domain.kernel.mapper import EventMapper
from projections.audit.verify import verify
from projections.kernel.database.connection import Connection
from projections.kernel.database.database import Database
from projections.log.append import Appender
from projections.log.executor import CommandExecutor
from projections.log.statement import LogRow, WriteSet
from projections.record.queries import LinkUsers
from tests.support.postgres import asked
from tests.support.waiting import pauses

SOCKET = ".s.PGSQL.5432"
_DONE = b"SELECT 1\0"  # the tag that PostgreSQL ends an append's answer with


def event(stream: str, version: int = 1, *, state: bytes = b"{}", metadata: str = "{}", topic: str = "test.happened") -> LogRow:
    return LogRow.of(stream=stream, version=version, topic=topic, event_id=uuid4(), state=state, metadata=metadata)


def write_of(stream: str, version: int = 1, *, claims: Sequence[Claim] = (), releases: Sequence[Claim] = ()) -> WriteSet:
    return WriteSet([event(stream, version)], claims=[*claims], releases=[*releases])


async def until(condition: Callable[[], object], *, seconds: float = 60) -> None:
    """The limit is for a machine that is busy with other work; it costs nothing where the condition comes true."""
    async with asyncio.timeout(seconds):
        for pause in pauses():
            if condition():
                return
            await asyncio.sleep(pause)


def rows(conninfo: str, question: str, *parameters: object) -> list[TupleRow]:
    return asked(conninfo, question.encode(), parameters).fetchall()


def logged(conninfo: str) -> list[tuple[int, str, int]]:
    """Position, stream and version of every event, in the log's order."""
    return [(p, s, v) for p, s, v in rows(conninfo, "SELECT position, originator_id, originator_version FROM events ORDER BY 1")]


def whole(conninfo: str) -> int:
    """Return the number of events in the log, after checking that its chain is unbroken and its positions are dense."""
    verdict = verify(conninfo)
    assert verdict.valid, verdict.reason
    return verdict.checked


@asynccontextmanager
async def log_locked(conninfo: str) -> AsyncIterator[None]:
    """Somebody else holds the lock of the log: whoever appends waits."""
    async with await AsyncConnection.connect(conninfo) as holder:
        await holder.execute("SELECT FROM log_identity FOR UPDATE")
        yield
        await holder.rollback()


def appenders(conninfo: str, *, waiting: bool = False) -> list[int]:
    """The backends of all appenders; with `waiting` only those that wait for a lock."""
    stored_rows = rows(
        conninfo,
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'medialedger appender' AND datname = current_database()"
        + (" AND wait_event_type = 'Lock'" if waiting else ""),
    )
    return [pid for (pid,) in stored_rows]


def terminate(conninfo: str, pids: Sequence[int]) -> None:
    rows(conninfo, "SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s::int[]) AS pid", list(pids))


class _Interrupted(Appender):
    def __init__(self, appender: Appender, before: Callable[[], Awaitable[None]]) -> None:
        self._inner = appender
        self._before = before

    @property
    def timeline(self) -> int:
        return self._inner.timeline

    async def append(self, append: WriteSet) -> int:
        await self._before()
        return await self._inner.append(append)


def interrupted(core: Core, before: Callable[[], Awaitable[None]]) -> CommandExecutor:
    """An executor on the same log, during which something else happens between each decision and its append."""
    return CommandExecutor(
        _Interrupted(core.appender, before),
        core.streams,
        mapper=EventMapper(core.catalogue),
        views=core.views,
        users=LinkUsers(core.database),
        clock=core.clock,
    )


class Remembering(Database):
    """Keeps the connections that it makes, so that a test can ask them what only they know."""

    def __init__(self, conninfo: str, **options: Any) -> None:
        super().__init__(conninfo, **options)
        self.made: list[Connection] = []

    async def connect(self, purpose: str, *, seconds: float | None = None, settings: Sequence[tuple[str, str]] = ()) -> Connection:
        self.made.append(await super().connect(purpose, seconds=seconds, settings=settings))
        return self.made[-1]


class Wire:
    """A unix socket in front of PostgreSQL's. It can lose the answer of the next append, or be down altogether."""

    def __init__(self, conninfo: str) -> None:
        self._target = str(Path(str(conninfo_to_dict(conninfo)["host"])) / SOCKET)
        self._directory = Path(tempfile.mkdtemp(prefix="wire"))
        self.conninfo = make_conninfo(conninfo, host=str(self._directory))
        self.lost = asyncio.Event()
        self._lose = 0
        self._silently = False
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._lines: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self.mend()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cut()
        shutil.rmtree(self._directory)

    async def mend(self) -> None:
        self._server = await asyncio.start_unix_server(self._accept, self._directory / SOCKET)

    async def cut(self) -> None:
        """Nobody gets through, and whoever was through is thrown out."""
        assert self._server is not None
        self._server.close()
        (self._directory / SOCKET).unlink(missing_ok=True)
        for end in list(self._ends):
            end.close()
        if self._lines:
            await asyncio.wait(self._lines)

    def lose_answer(self, *, times: int = 1, silently: bool = False) -> None:
        """The answers of the next `times` appends never arrive: the line breaks, or (`silently`) says nothing at all."""
        self._lose, self._silently = times, silently
        self.lost.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(self._target)
        self._ends |= {writer, back}
        for line in (self._carry(reader, back, answers=False), self._carry(there, writer, answers=True)):
            task = asyncio.create_task(line)
            self._lines.add(task)
            task.add_done_callback(self._lines.discard)

    async def _carry(self, source: asyncio.StreamReader, drain: asyncio.StreamWriter, *, answers: bool) -> None:
        try:
            while chunk := await source.read(65_536):
                if answers and self._lose and _DONE in chunk:
                    self._lose -= 1
                    self.lost.set()
                    if self._silently:
                        continue
                    break
                drain.write(chunk)
                await drain.drain()
        except ConnectionError:
            pass
        finally:
            self._ends.discard(drain)
            drain.close()

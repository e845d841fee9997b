"""Builds a view again from the log, beside the live one, and flips when it has caught up.

Blue and green: `<view>_next` is filled by COPY from a fold of the whole log, given its indexes, brought up to date with what was
committed meanwhile, and takes the old table's place in one short transaction. The flip locks the live view first and the log
second, which is the order in which an append meets them too (its statement locks the tables it names before it runs), so the two
can wait for each other but never in a circle; and no append can straddle the flip.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.kernel.errors import Unavailable
from domain.kernel.stream_name import StreamName
from projections.kernel.database import Database
from projections.kernel.view import View
from projections.log.reader import HEAD, head
from projections.log.streams import Streams

_log = logging.getLogger(__name__)

_PAGE = 5_000
_SHORT_TAIL = 500
_FLIP_TRIES = 50
_ACCESS = "GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {role}"

_HISTORY = """
SELECT originator_id, originator_version, topic, state FROM events
WHERE position <= {position} AND ({kinds}) ORDER BY originator_id, originator_version
"""
_TOUCHED = """
SELECT DISTINCT originator_id FROM events WHERE position > %(after)s AND position <= %(until)s
AND split_part(originator_id, ':', 1) = ANY(%(kinds)s)
"""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild did: events folded, rows written, and the log position that the view has reached."""

    events: int
    rows: int
    position: int


class Rebuilder:
    """Rebuilds views. Needs the right to create tables, so it runs on a connection of the schema's owner."""

    def __init__(self, database: Database, streams: Streams, *, app_role: str | None) -> None:
        self._database = database
        self._streams = streams
        self._app_role = app_role

    async def rebuild(self, view: View, *, progress: Callable[[int], None] | None = None) -> Rebuilt:
        """Build the view again under live traffic. One rebuild of a view at a time, guarded by an advisory lock."""
        async with self._alone(view) as connection:
            return await self._rebuild(connection, view, progress or (lambda _: None))

    async def ensure(self, views: Iterable[View]) -> list[str]:
        """Build the views that are missing, have another version or lack a kind. Returns their names."""
        built = []
        for view in views:
            if not await self._fits(view):
                async with self._alone(view) as connection:
                    if not await self._fits(view):
                        await self._rebuild(connection, view, lambda _: None)
                        built.append(view.name)
        return built

    async def _fits(self, view: View) -> bool:
        """A view of more kinds than this release knows belongs to a newer release, and is left as it is."""
        found = await self._database.row("SELECT version, kinds FROM view_versions WHERE name = %s", (view.name,))
        return found is not None and found[0] == view.version and (found[1] is None or {*view.kinds} <= {*found[1]})

    @asynccontextmanager
    async def _alone(self, view: View) -> AsyncIterator[AsyncConnection[TupleRow]]:
        connection = await self._database.connect("rebuild", seconds=None)
        try:
            await connection.execute("SELECT pg_advisory_lock(hashtext(%s))", (f"rebuild {view.name}",))
            yield connection
        finally:
            await connection.close()

    async def _rebuild(self, connection: AsyncConnection[TupleRow], view: View, progress: Callable[[int], None]) -> Rebuilt:
        table = f"{view.name}_next"
        await connection.execute(f"DROP TABLE IF EXISTS {table}".encode())
        await connection.execute(view.create(table).encode())
        start = await head(self._database)
        events, rows = await self._fill(connection, view, table=table, position=start, progress=progress)
        for statement in view.complete(table):
            await connection.execute(statement.encode())
        if self._app_role is not None:
            await connection.execute(_ACCESS.format(table=table, role=self._app_role).encode())
        position = start
        while (latest := await head(self._database)) - position > _SHORT_TAIL:
            await self._catch_up(connection, view, table=table, after=position, until=latest)
            position = latest
        reached = await self._flip(connection, view, table=table, position=position)
        await connection.execute(f"ANALYZE {view.name}".encode())
        return Rebuilt(events, rows, reached)

    async def _fill(
        self, connection: AsyncConnection[TupleRow], view: View, *, table: str, position: int, progress: Callable[[int], None]
    ) -> tuple[int, int]:
        """Fold the log stream by stream, in the log's own index order, and COPY the rows as they come."""
        events = rows = 0
        names = ", ".join(column.name for column in view.columns)
        reader = await self._database.connect("rebuild reader", seconds=None)
        frozen = _collector_at_rest()
        try:
            async with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({names}) FROM STDIN".encode()) as copy:
                async for page in _pages(reader, view, position):
                    events += len(page)
                    for root in self._streams.folded(page).values():
                        for row in view.rows(root):
                            await copy.write_row(row)
                            rows += 1
                    progress(events)
        finally:
            frozen()
            await reader.close()
        return events, rows

    async def _catch_up(self, connection: AsyncConnection[TupleRow], view: View, *, table: str, after: int, until: int) -> None:
        """Feed the rows of every changed stream, with its present state: the view keeps the newest version only."""
        found = await connection.execute(_TOUCHED, {"after": after, "until": until, "kinds": list(view.kinds)})
        streams = [stream for (stream,) in await found.fetchall()]
        for begin in range(0, len(streams), _PAGE):
            roots = await self._streams.load.many(streams[begin : begin + _PAGE])
            packed = view.pack([row for root in roots.values() for row in view.rows(root)])
            await connection.execute(view.upsert(table, ""), packed, binary=True)

    async def _flip(self, connection: AsyncConnection[TupleRow], view: View, *, table: str, position: int) -> int:
        for left in reversed(range(_FLIP_TRIES)):
            try:
                return await self._try_flip(connection, view, table=table, position=position)
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected, psycopg.errors.QueryCanceled):
                _log.info("the flip of %s waited too long for a lock; trying again", view.name)
                await asyncio.sleep(0.05)
                if not left:
                    raise Unavailable(f"{view.name} is too busy to be replaced") from None
        raise AssertionError("unreachable")

    async def _try_flip(self, connection: AsyncConnection[TupleRow], view: View, *, table: str, position: int) -> int:
        async with connection.transaction():
            await connection.execute("SET LOCAL lock_timeout = '500ms'")
            await connection.execute("SET LOCAL idle_in_transaction_session_timeout = '2s'")
            if await _exists(connection, view.name):
                await connection.execute(f"LOCK TABLE {view.name} IN ACCESS EXCLUSIVE MODE".encode())
            await connection.execute("SELECT FROM log_identity FOR UPDATE")  # a statement of its own: the next sees the last commit
            found = await (await connection.execute(HEAD.encode())).fetchone()
            reached = int(found[0]) if found else 0
            await self._catch_up(connection, view, table=table, after=position, until=reached)
            await connection.execute(f"DROP TABLE IF EXISTS {view.name}".encode())
            for statement in _renames(view, table):
                await connection.execute(statement.encode())
            await connection.execute(
                "INSERT INTO view_versions (name, version, position, kinds) VALUES (%s, %s, %s, %s) ON CONFLICT (name) DO UPDATE "
                "SET version = excluded.version, position = excluded.position, kinds = excluded.kinds, built_at = now()",
                (view.name, view.version, reached, list(view.kinds)),
            )
        return reached


def _renames(view: View, table: str) -> list[str]:
    """The new table and everything that carries its name take the live name."""
    indexes = [f"ALTER INDEX {table}_{name} RENAME TO {view.name}_{name}" for name in ("key", *view.indexes)]
    return [f"ALTER TABLE {table} RENAME TO {view.name}", *indexes]


async def _exists(connection: AsyncConnection[TupleRow], table: str) -> bool:
    found = await (await connection.execute("SELECT to_regclass(%s) IS NOT NULL", (table,))).fetchone()
    return bool(found and found[0])


async def _pages(reader: AsyncConnection[TupleRow], view: View, position: int) -> AsyncIterator[list[tuple[Any, ...]]]:
    """The history in pages that never cut a stream in two."""
    bounds = map(StreamName.bounds, view.kinds)
    kinds = " OR ".join(f"(originator_id >= '{first}' AND originator_id < '{end}')" for first, end in bounds)
    carried: list[tuple[Any, ...]] = []
    async with reader.transaction(), reader.cursor("history") as cursor:
        cursor.itersize = _PAGE
        await cursor.execute(_HISTORY.format(position=position, kinds=kinds).encode(), binary=True)
        while rows := await cursor.fetchmany(_PAGE):
            carried += rows
            cut = len(carried)
            last = carried[-1][0]
            while cut and carried[cut - 1][0] == last:
                cut -= 1
            if cut:
                yield carried[:cut]
                carried = carried[cut:]
    if carried:
        yield carried


def _collector_at_rest() -> Callable[[], None]:
    """Folding makes millions of objects that die young and in order; the cycle collector would only walk them again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    return gc.enable if was_enabled else lambda: None

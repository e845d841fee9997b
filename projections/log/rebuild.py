"""Rebuilds a view from the log next to the live one, and replaces the live one as soon as the new one has caught up.

This is a blue-green deployment of a table. `<view>_next` is filled by COPY from a fold of the whole log, gets its indexes, is
brought up to date with what was committed in the meantime, and takes the old table's place in one short transaction (the flip). The
flip locks the live view first and the log second. An append locks them in the same order, because its statement locks the tables
that it names before it runs, so the two can wait for each other but cannot deadlock, and no append can straddle the flip.

A flip to another version waits until no older build is running, since an older build writes only to the old table. Versions never
go backwards.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.kernel.errors import Unavailable
from projections.kernel.database.database import Database
from projections.kernel.database.page import MOST_BYTES
from projections.kernel.schema.builds import BUILD, LEASE, OlderBuildsRun, hold_builds, schema_of, shut_out_older
from projections.kernel.schema.view import View
from projections.log.reader import HEAD, head
from projections.log.streams import Streams
from projections.log.view_tables import (
    drop_unused_schemas,
    lock_view,
    make_stand_in,
    new_kinds,
    of_kinds,
    stored_table,
)

_log = logging.getLogger(__name__)

_PAGE = 5_000
_FETCHED: Final = 250
"""The number of events, or of streams that have changed since, that are fetched at once."""
_SHORT_TAIL = 500
_FLIP_TRIES = 50
_OF_A_NEWER = "{} belongs to a newer build, which has to build it"
_SORTING = (("work_mem", "256MB"),)
"""The settings of the connection that reads the history, sorted by stream. Beyond this memory PostgreSQL sorts on disk: it writes
once, and merges in one pass up to 100 GB."""
_INDEXING = (("maintenance_work_mem", "256MB"),)
_SAY_AFTER = 30.0
_REBUILDER = """
SELECT l.pid, to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ') FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (l.classid::bigint << 32 | l.objid::bigint) = %s
"""
_LOOK_AGAIN = 1.0
"""The number of seconds between two checks for older builds that are still running."""
_ACCESS = "GRANT SELECT, INSERT, UPDATE, DELETE ON public.{table} TO {role}"

_HISTORY = """
SELECT originator_id, originator_version, topic, state FROM events
WHERE position <= {position} AND ({kinds}) ORDER BY originator_id, originator_version
"""
_SHOWN = "SELECT viewname FROM pg_views WHERE schemaname = %s"
_TOUCHED = """
SELECT DISTINCT originator_id FROM events WHERE position > %(after)s AND position <= %(until)s
AND split_part(originator_id, ':', 1) = ANY(%(kinds)s)
"""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The result of a rebuild: events folded, rows written, and the log position that the view has reached."""

    events: int
    rows: int
    position: int


class Rebuilder:
    """Rebuilds views. It needs the right to create tables, so it runs on a connection of the schema's owner.

    A start waits for `patience` seconds, after which a process that was killed counts as dead. A process that waits for another
    one's rebuild logs this every `say_after` seconds.
    """

    def __init__(
        self,
        database: Database,
        streams: Streams,
        *,
        app_role: str | None,
        build: int = BUILD,
        patience: float = LEASE,
        say_after: float = _SAY_AFTER,
    ) -> None:
        self._database = database
        self._streams = streams
        self._app_role = app_role
        self._build = build
        self._patience = patience
        self._say_after = say_after

    async def rebuild(self, view: View[Any], *, progress: Callable[[int], None] | None = None) -> Rebuilt:
        """Rebuild the view under live traffic. An advisory lock allows one rebuild of a view at a time.

        Raise `OlderBuildsRun` for a new version while an older build is running, and `BuildTooOld`.
        """
        async with self._alone(view) as connection:
            return await self._rebuild(connection, view, progress=progress)

    async def ensure(self, views: Iterable[View[Any]]) -> list[str]:
        """Make every view ready for this build, and return the names of the views that were built.

        A view whose table has the earlier version is not built yet: queries see it in its new form, and `finish` builds it. For
        other views this waits some seconds until no older build is running, and otherwise raises `OlderBuildsRun`.
        """
        built = []
        views = list(views)
        new = await new_kinds(self._database, views)
        for view in views:
            if not await self._fits(view, new) and not await self._stand_in(view):
                async with self._alone(view) as connection:
                    if not await self._fits(view, new):
                        await self._rebuild(connection, view, new=new, wait=self._patience)
                        built.append(view.name)
        return built

    async def missing(self, views: Iterable[View[Any]]) -> list[str]:
        """Return the names of the views that only the schema's owner can make ready, with `ensure`."""
        views, schema = list(views), schema_of(self._build)
        new = await new_kinds(self._database, views)
        shown = {name for (name,) in await self._database.rows(_SHOWN, (schema,))}
        later = {view.name for view in await self.unfinished(views)} & shown
        return [view.name for view in views if view.name not in later and not await self._fits(view, new)]

    async def unfinished(self, views: Iterable[View[Any]]) -> list[View[Any]]:
        """Return the views whose tables still have the earlier version."""
        versions: dict[str, int] = dict(await self._database.rows("SELECT name, version FROM view_versions"))
        return [view for view in views if view.earlier is not None and versions.get(view.name) == view.earlier.version]

    async def finish(self, views: Iterable[View[Any]]) -> list[str]:
        """Build the unfinished views, each as soon as no older build is running, and return their names."""
        built = []
        for view in views:
            async with self._alone(view) as connection:
                if await self.unfinished([view]):
                    await self._rebuild(connection, view, wait=math.inf)
                    built.append(view.name)
        await drop_unused_schemas(self._database)
        return built

    async def _fits(self, view: View[Any], new: frozenset[str]) -> bool:
        """Return True if the table has the view's version and kinds. Kinds that are new to the log are added to the kinds of the
        table."""
        async with self._database.connection() as connection, connection.transaction():
            await hold_builds(connection)
            table = await stored_table(connection, view)
            if table is None or table.version < view.version:
                return False
            if table.version > view.version:
                raise Unavailable(_OF_A_NEWER.format(view.name))
            added = {*view.kinds} - table.kinds
            if added <= new:
                await connection.execute("UPDATE view_versions SET kinds = kinds || %s WHERE name = %s", (sorted(added), view.name))
            return added <= new

    async def _stand_in(self, view: View[Any]) -> bool:
        async with self._database.connection() as connection, connection.transaction():
            await hold_builds(connection)
            table = await stored_table(connection, view)
            if table is None or view.earlier is None or table.version != view.earlier.version:
                return False
            await make_stand_in(connection, view, schema=schema_of(self._build), role=self._app_role)
            return True

    @asynccontextmanager
    async def _alone(self, view: View[Any]) -> AsyncIterator[AsyncConnection[TupleRow]]:
        connection = await self._database.connect("rebuild", seconds=None, settings=_INDEXING)
        try:
            while not await self._try_lock(connection, view):
                await self._name_rebuilder(connection, view)
            yield connection
        finally:
            await connection.close()

    async def _try_lock(self, connection: AsyncConnection[TupleRow], view: View[Any]) -> bool:
        try:
            async with connection.transaction():
                await connection.execute("SELECT set_config('lock_timeout', %s, true)", (f"{self._say_after:.3f}s",))
                await connection.execute("SELECT pg_advisory_lock(%s)", (_lock_of(view),))
        except psycopg.errors.LockNotAvailable:
            return False
        return True

    async def _name_rebuilder(self, connection: AsyncConnection[TupleRow], view: View[Any]) -> None:
        """Log which process is rebuilding the view. A rebuild may take hours, but a process that is frozen during one keeps the
        lock too, and an operator has to end it."""
        rebuilder = await (await connection.execute(_REBUILDER, (_lock_of(view),))).fetchone()
        if rebuilder is not None:
            _log.warning(
                "%s is being rebuilt by another process (PostgreSQL process %d, since %s): waiting for it", view.name, *rebuilder
            )

    async def _rebuild(
        self,
        connection: AsyncConnection[TupleRow],
        view: View[Any],
        *,
        progress: Callable[[int], None] | None = None,
        new: frozenset[str] = frozenset(),
        wait: float = 0.0,
    ) -> Rebuilt:
        """Build and flip the view. `new` holds the kinds that no older build knows; `wait` is the number of seconds to wait for
        older builds to end."""
        table = f"{view.name}_next"
        await connection.execute(f"DROP TABLE IF EXISTS public.{table}".encode())
        await connection.execute(view.create(table).encode())
        position = await head(self._database)
        events, rows = await self._fill(connection, view, table=table, position=position, progress=progress or (lambda _: None))
        for statement in view.complete(table):
            await connection.execute(statement.encode())
        if self._app_role is not None:
            await connection.execute(_ACCESS.format(table=table, role=self._app_role).encode())
        since, logged = time.monotonic(), False
        while True:
            while (latest := await head(self._database)) - position > _SHORT_TAIL:
                await self._catch_up(connection, view, table=table, after=position, until=latest)
                position = latest
            try:
                reached = await self._flip(connection, view, table=table, position=position, new=new)
                break
            except OlderBuildsRun as older:
                if time.monotonic() > since + wait:
                    await connection.execute(f"DROP TABLE public.{table}".encode())
                    raise
                if not logged:
                    _log.warning("%s", older)
                    logged = True
                await asyncio.sleep(_LOOK_AGAIN)
        await connection.execute(f"ANALYZE public.{view.name}".encode())
        return Rebuilt(events, rows, reached)

    async def _fill(
        self, connection: AsyncConnection[TupleRow], view: View[Any], *, table: str, position: int, progress: Callable[[int], None]
    ) -> tuple[int, int]:
        """Fold the log stream by stream and COPY the rows as they are made. Return the numbers of events and of rows."""
        events = rows = 0
        names = ", ".join(column.name for column in view.columns)
        reader = await self._database.connect("rebuild reader", seconds=None, settings=_SORTING)
        frozen = _collector_at_rest()
        try:
            async with connection.cursor() as cursor, cursor.copy(f"COPY public.{table} ({names}) FROM STDIN".encode()) as copy:
                async for page in _pages(reader, view, position):
                    events += len(page)
                    for root in self._streams.fold(page).values():
                        for row in view.rows(root):
                            await copy.write_row(row)
                            rows += 1
                    progress(events)
        finally:
            frozen()
            await reader.close()
        return events, rows

    async def _catch_up(
        self, connection: AsyncConnection[TupleRow], view: View[Any], *, table: str, after: int, until: int
    ) -> None:
        """Write the rows of every changed stream from its present state. This is enough because the view holds the newest version
        only."""
        cursor = await connection.execute(_TOUCHED, {"after": after, "until": until, "kinds": list(view.kinds)})
        streams = [stream for (stream,) in await cursor.fetchall()]
        for begin in range(0, len(streams), _FETCHED):
            roots = await self._streams.load.many(streams[begin : begin + _FETCHED])
            packed = view.pack([row for root in roots.values() for row in view.rows(root)])
            await connection.execute(view.upsert(table, ""), packed, binary=True)

    async def _flip(
        self, connection: AsyncConnection[TupleRow], view: View[Any], *, table: str, position: int, new: frozenset[str]
    ) -> int:
        for remaining in reversed(range(_FLIP_TRIES)):
            try:
                return await self._try_flip(connection, view, table=table, position=position, new=new)
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected, psycopg.errors.QueryCanceled):
                _log.info("the flip of %s waited too long for a lock; trying again", view.name)
                await asyncio.sleep(0.05)
                if not remaining:
                    raise Unavailable(f"{view.name} is too busy to be replaced") from None
        raise AssertionError("unreachable")

    async def _try_flip(
        self, connection: AsyncConnection[TupleRow], view: View[Any], *, table: str, position: int, new: frozenset[str]
    ) -> int:
        async with connection.transaction():
            await connection.execute("SET LOCAL lock_timeout = '500ms'")
            await connection.execute("SET LOCAL idle_in_transaction_session_timeout = '2s'")
            await self._may_flip(connection, view, new)
            stand_ins = await lock_view(connection, view.name)
            # A separate statement, so that the next one sees the last commit.
            await connection.execute("SELECT FROM log_identity FOR UPDATE")
            row = await (await connection.execute(HEAD.encode())).fetchone()
            reached = int(row[0]) if row else 0
            await self._catch_up(connection, view, table=table, after=position, until=reached)
            before = await stored_table(connection, view)
            for stand_in in stand_ins:
                await connection.execute(stand_in.drop.encode())
            await connection.execute(f"DROP TABLE IF EXISTS public.{view.name}".encode())
            for statement in view.rename(table):
                await connection.execute(statement.encode())
            if before is not None and before.version == view.version:  # the stand-ins are for a newer build
                for stand_in in stand_ins:
                    await connection.execute(stand_in.create(self._app_role).encode())
            await connection.execute(
                "INSERT INTO view_versions (name, version, position, kinds) VALUES (%s, %s, %s, %s) ON CONFLICT (name) DO UPDATE "
                "SET version = excluded.version, position = excluded.position, kinds = excluded.kinds, built_at = now()",
                (view.name, view.version, reached, list(view.kinds)),
            )
        return reached

    async def _may_flip(self, connection: AsyncConnection[TupleRow], view: View[Any], new: frozenset[str]) -> None:
        """Raise an error if the flip would lose rows.

        An older build would keep running without writing to the new table, and nothing that a newer build wrote may be lost.
        """
        await hold_builds(connection)
        table = await stored_table(connection, view)
        if table is not None and (table.version > view.version or table.kinds - {*view.kinds}):
            raise Unavailable(_OF_A_NEWER.format(view.name))
        existing = table.kinds if table is not None and table.version == view.version else frozenset()
        if {*view.kinds} - existing - new:
            await shut_out_older(connection, self._build, because=f"{view.name} version {view.version}")


async def _pages(reader: AsyncConnection[TupleRow], view: View[Any], position: int) -> AsyncIterator[list[tuple[Any, ...]]]:
    """Yield the history in pages, limited by number of events and by bytes. A stream is never split between two pages."""
    kinds = of_kinds(view.kinds)
    carried: list[tuple[Any, ...]] = []
    size = 0
    async with reader.transaction(), reader.cursor("history") as cursor:
        await cursor.execute(_HISTORY.format(position=position, kinds=kinds).encode(), binary=True)
        while rows := await cursor.fetchmany(_FETCHED):
            carried += rows
            size += _bytes(rows)
            last = carried[-1][0]
            if carried[0][0] == last or (len(carried) < _PAGE and size < MOST_BYTES):
                continue
            cut = len(carried)
            while carried[cut - 1][0] == last:
                cut -= 1
            yield carried[:cut]
            carried = carried[cut:]
            size = _bytes(carried)
    if carried:
        yield carried


def _bytes(rows: Iterable[tuple[Any, ...]]) -> int:
    return sum(len(state) for *_, state in rows)


def _lock_of(view: View[Any]) -> int:
    """Return the number of the advisory lock for rebuilds of a view."""
    return int.from_bytes(sha256(f"rebuild {view.name}".encode()).digest()[:8], signed=True)


def _collector_at_rest() -> Callable[[], None]:
    """Disable the cycle collector, and return a function that restores it.

    Folding makes millions of short-lived objects without cycles, which the collector would traverse again and again for nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    return gc.enable if was_enabled else lambda: None

"""Builds a view again from the log, beside the live one, and flips when it has caught up.

Blue and green: `<view>_next` is filled by COPY from a fold of the whole log, given its indexes, brought up to date with what was
committed meanwhile, and takes the old table's place in one short transaction. The flip locks the live view first and the log
second, which is the order in which an append meets them too (its statement locks the tables it names before it runs), so the two
can wait for each other but never in a circle; and no append can straddle the flip.

A flip to another version waits until no older build lives, since an older build writes the old table only. It never goes back.
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
from projections.kernel.builds import BUILD, LEASE, OlderBuildsRun, hold_builds, schema_of, shut_out_older
from projections.kernel.database import Database
from projections.kernel.page import MOST_BYTES
from projections.kernel.view import View
from projections.log.reader import HEAD, head
from projections.log.streams import Streams
from projections.log.view_tables import (
    drop_unused_schemas,
    lock_view,
    make_stand_in,
    new_kinds,
    of_kinds,
    stored,
)

_log = logging.getLogger(__name__)

_PAGE = 5_000
_FETCHED: Final = 250
"""Events, or streams that have changed since, that are fetched at once."""
_SHORT_TAIL = 500
_FLIP_TRIES = 50
_OF_A_NEWER = "{} belongs to a newer build, which has to build it"
_SORTING = (("work_mem", "256MB"),)
"""The history is sorted by streams. Beyond this memory it is sorted on disk: written once, and merged in one pass up to 100 GB."""
_INDEXING = (("maintenance_work_mem", "256MB"),)
_SAY_AFTER = 30.0
_REBUILDER = """
SELECT l.pid, to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ') FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (l.classid::bigint << 32 | l.objid::bigint) = %s
"""
_LOOK_AGAIN = 1.0
"""Seconds between two looks at whether older builds live."""
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
    """What a rebuild did: events folded, rows written, and the log position that the view has reached."""

    events: int
    rows: int
    position: int


class Rebuilder:
    """Rebuilds views. Needs the right to create tables, so it runs on a connection of the schema's owner. A start waits for
    `patience` seconds: by then a process that was killed is taken for dead. Whoever waits for another rebuild says so every
    `say_after` seconds."""

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

    async def rebuild(self, view: View, *, progress: Callable[[int], None] | None = None) -> Rebuilt:
        """Build the view again under live traffic. One rebuild of a view at a time, guarded by an advisory lock. Raises
        `OlderBuildsRun` for a new version while an older build lives, and `BuildTooOld`."""
        async with self._alone(view) as connection:
            return await self._rebuild(connection, view, progress=progress)

    async def ensure(self, views: Iterable[View]) -> list[str]:
        """Make every view ready for this build. Returns the names of those that were built.

        One of the earlier version is not built yet: queries get it in its new form, and `finish` builds it. For others this waits
        some seconds until no older build lives, else raises `OlderBuildsRun`."""
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

    async def missing(self, views: Iterable[View]) -> list[str]:
        """The names of those that only the owner can make ready, by `ensure`."""
        views, schema = list(views), schema_of(self._build)
        new = await new_kinds(self._database, views)
        shown = {name for (name,) in await self._database.rows(_SHOWN, (schema,))}
        later = {view.name for view in await self.unfinished(views)} & shown
        return [view.name for view in views if view.name not in later and not await self._fits(view, new)]

    async def unfinished(self, views: Iterable[View]) -> list[View]:
        """The views that have their earlier version in the database."""
        versions: dict[str, int] = dict(await self._database.rows("SELECT name, version FROM view_versions"))
        return [view for view in views if view.earlier is not None and versions.get(view.name) == view.earlier.version]

    async def finish(self, views: Iterable[View]) -> list[str]:
        """Build what is unfinished, each as soon as no older build lives. Returns the names."""
        built = []
        for view in views:
            async with self._alone(view) as connection:
                if await self.unfinished([view]):
                    await self._rebuild(connection, view, wait=math.inf)
                    built.append(view.name)
        await drop_unused_schemas(self._database)
        return built

    async def _fits(self, view: View, new: frozenset[str]) -> bool:
        """Kinds that are new to the log are added to those that the table has."""
        async with self._database.connection() as connection, connection.transaction():
            await hold_builds(connection)
            found = await stored(connection, view)
            if found is None or found.version < view.version:
                return False
            if found.version > view.version:
                raise Unavailable(_OF_A_NEWER.format(view.name))
            added = {*view.kinds} - found.kinds
            if added <= new:
                await connection.execute("UPDATE view_versions SET kinds = kinds || %s WHERE name = %s", (sorted(added), view.name))
            return added <= new

    async def _stand_in(self, view: View) -> bool:
        async with self._database.connection() as connection, connection.transaction():
            await hold_builds(connection)
            found = await stored(connection, view)
            if found is None or view.earlier is None or found.version != view.earlier.version:
                return False
            await make_stand_in(connection, view, schema=schema_of(self._build), role=self._app_role)
            return True

    @asynccontextmanager
    async def _alone(self, view: View) -> AsyncIterator[AsyncConnection[TupleRow]]:
        connection = await self._database.connect("rebuild", seconds=None, settings=_INDEXING)
        try:
            while not await self._locked(connection, view):
                await self._name_rebuilder(connection, view)
            yield connection
        finally:
            await connection.close()

    async def _locked(self, connection: AsyncConnection[TupleRow], view: View) -> bool:
        try:
            async with connection.transaction():
                await connection.execute("SELECT set_config('lock_timeout', %s, true)", (f"{self._say_after:.3f}s",))
                await connection.execute("SELECT pg_advisory_lock(%s)", (_lock_of(view),))
        except psycopg.errors.LockNotAvailable:
            return False
        return True

    async def _name_rebuilder(self, connection: AsyncConnection[TupleRow], view: View) -> None:
        """It may take hours. But a process that is frozen in the middle keeps the lock too, and somebody has to end it."""
        found = await (await connection.execute(_REBUILDER, (_lock_of(view),))).fetchone()
        if found is not None:
            _log.warning(
                "%s is being rebuilt by another process (PostgreSQL process %d, since %s): waiting for it", view.name, *found
            )

    async def _rebuild(
        self,
        connection: AsyncConnection[TupleRow],
        view: View,
        *,
        progress: Callable[[int], None] | None = None,
        new: frozenset[str] = frozenset(),
        wait: float = 0.0,
    ) -> Rebuilt:
        """`new`: the kinds that no older build knows. `wait`: seconds for older builds to end."""
        table = f"{view.name}_next"
        await connection.execute(f"DROP TABLE IF EXISTS public.{table}".encode())
        await connection.execute(view.create(table).encode())
        position = await head(self._database)
        events, rows = await self._fill(connection, view, table=table, position=position, progress=progress or (lambda _: None))
        for statement in view.complete(table):
            await connection.execute(statement.encode())
        if self._app_role is not None:
            await connection.execute(_ACCESS.format(table=table, role=self._app_role).encode())
        since, said = time.monotonic(), False
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
                if not said:
                    _log.warning("%s", older)
                    said = True
                await asyncio.sleep(_LOOK_AGAIN)
        await connection.execute(f"ANALYZE public.{view.name}".encode())
        return Rebuilt(events, rows, reached)

    async def _fill(
        self, connection: AsyncConnection[TupleRow], view: View, *, table: str, position: int, progress: Callable[[int], None]
    ) -> tuple[int, int]:
        """Fold the log stream by stream, and COPY the rows as they come."""
        events = rows = 0
        names = ", ".join(column.name for column in view.columns)
        reader = await self._database.connect("rebuild reader", seconds=None, settings=_SORTING)
        frozen = _collector_at_rest()
        try:
            async with connection.cursor() as cursor, cursor.copy(f"COPY public.{table} ({names}) FROM STDIN".encode()) as copy:
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
        for begin in range(0, len(streams), _FETCHED):
            roots = await self._streams.load.many(streams[begin : begin + _FETCHED])
            packed = view.pack([row for root in roots.values() for row in view.rows(root)])
            await connection.execute(view.upsert(table, ""), packed, binary=True)

    async def _flip(
        self, connection: AsyncConnection[TupleRow], view: View, *, table: str, position: int, new: frozenset[str]
    ) -> int:
        for left in reversed(range(_FLIP_TRIES)):
            try:
                return await self._try_flip(connection, view, table=table, position=position, new=new)
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected, psycopg.errors.QueryCanceled):
                _log.info("the flip of %s waited too long for a lock; trying again", view.name)
                await asyncio.sleep(0.05)
                if not left:
                    raise Unavailable(f"{view.name} is too busy to be replaced") from None
        raise AssertionError("unreachable")

    async def _try_flip(
        self, connection: AsyncConnection[TupleRow], view: View, *, table: str, position: int, new: frozenset[str]
    ) -> int:
        async with connection.transaction():
            await connection.execute("SET LOCAL lock_timeout = '500ms'")
            await connection.execute("SET LOCAL idle_in_transaction_session_timeout = '2s'")
            await self._may_flip(connection, view, new)
            stand_ins = await lock_view(connection, view.name)
            await connection.execute("SELECT FROM log_identity FOR UPDATE")  # a statement of its own: the next sees the last commit
            found = await (await connection.execute(HEAD.encode())).fetchone()
            reached = int(found[0]) if found else 0
            await self._catch_up(connection, view, table=table, after=position, until=reached)
            before = await stored(connection, view)
            for stand_in in stand_ins:
                await connection.execute(stand_in.drop.encode())
            await connection.execute(f"DROP TABLE IF EXISTS public.{view.name}".encode())
            for statement in view.rename(table):
                await connection.execute(statement.encode())
            if before is not None and before.version == view.version:  # they are for a newer build
                for stand_in in stand_ins:
                    await connection.execute(stand_in.create(self._app_role).encode())
            await connection.execute(
                "INSERT INTO view_versions (name, version, position, kinds) VALUES (%s, %s, %s, %s) ON CONFLICT (name) DO UPDATE "
                "SET version = excluded.version, position = excluded.position, kinds = excluded.kinds, built_at = now()",
                (view.name, view.version, reached, list(view.kinds)),
            )
        return reached

    async def _may_flip(self, connection: AsyncConnection[TupleRow], view: View, new: frozenset[str]) -> None:
        """An older build would go on without writing what is built now; and nothing that a newer build wrote may be lost."""
        await hold_builds(connection)
        found = await stored(connection, view)
        if found is not None and (found.version > view.version or found.kinds - {*view.kinds}):
            raise Unavailable(_OF_A_NEWER.format(view.name))
        same = found.kinds if found is not None and found.version == view.version else frozenset()
        if {*view.kinds} - same - new:
            await shut_out_older(connection, self._build, because=f"{view.name} version {view.version}")


async def _pages(reader: AsyncConnection[TupleRow], view: View, position: int) -> AsyncIterator[list[tuple[Any, ...]]]:
    """The history in pages of so many events or bytes, or of one stream: none is cut in two."""
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


def _lock_of(view: View) -> int:
    """The number of the advisory lock of its rebuilds."""
    return int.from_bytes(sha256(f"rebuild {view.name}".encode()).digest()[:8], signed=True)


def _collector_at_rest() -> Callable[[], None]:
    """Folding makes millions of objects that die young and in order; the cycle collector would only walk them again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    return gc.enable if was_enabled else lambda: None

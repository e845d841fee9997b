"""The tables of views, their versions, and the database views (stand-ins) that temporarily show a table in another version."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.kernel.stream_name import StreamName
from projections.kernel.database.database import Database
from projections.kernel.schema.builds import hold_builds
from projections.kernel.schema.view import View

_STAND_INS = """
SELECT n.nspname, c.relname, pg_get_viewdef(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = %s AND c.relkind = 'v' AND starts_with(n.nspname, 'build_') ORDER BY 1
"""
_UNUSED = """
SELECT n.nspname FROM pg_namespace n
WHERE starts_with(n.nspname, 'build_') AND NOT EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid)
"""
_GRANT = "GRANT SELECT, UPDATE ON {table} TO {role}"  # UPDATE for FOR UPDATE


class Stored(NamedTuple):
    """The version of a view's table, and the kinds of aggregates in it."""

    version: int
    kinds: frozenset[str]


async def stored_table(connection: AsyncConnection[TupleRow], view: View[Any]) -> Stored | None:
    row = await (await connection.execute("SELECT version, kinds FROM view_versions WHERE name = %s", (view.name,))).fetchone()
    return None if row is None else Stored(row[0], frozenset(row[1]))


def of_kinds(kinds: Collection[str]) -> str:
    """Return an SQL condition on events of these kinds."""
    bounds = map(StreamName.bounds, kinds)
    return " OR ".join(f"(originator_id >= '{first}' AND originator_id < '{end}')" for first, end in bounds)


async def new_kinds(database: Database, views: Sequence[View[Any]]) -> frozenset[str]:
    """Return the kinds of aggregates that no other build knows: no view shows them yet, and they have no events."""
    shown = {kind for (kinds,) in await database.rows("SELECT kinds FROM view_versions") for kind in kinds}
    unseen = sorted({kind for view in views for kind in view.kinds} - shown)
    recorded = [kind for kind in unseen if await database.rows(f"SELECT FROM events WHERE {of_kinds([kind])} LIMIT 1")]
    return frozenset(unseen) - frozenset(recorded)


class StandIn(NamedTuple):
    """A database view that shows a view's table in the form of a newer build."""

    schema: str
    name: str
    query: str

    @property
    def drop(self) -> str:
        return f"DROP VIEW {self.schema}.{self.name}"

    def create(self, role: str | None) -> str:
        grant = "" if role is None else f"; {_GRANT.format(table=f'{self.schema}.{self.name}', role=role)}"
        return f"CREATE VIEW {self.schema}.{self.name} AS {self.query.rstrip(';')}{grant}"


async def make_stand_in(connection: AsyncConnection[TupleRow], view: View[Any], *, schema: str, role: str | None) -> None:
    """Create the stand-in of a view unless it exists."""
    if any(stand_in.schema == schema for stand_in in await _stand_ins(connection, view.name)):
        return
    await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
    await connection.execute(view.stand_in(schema).encode())
    if role is not None:
        await connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}".encode())
        await connection.execute(_GRANT.format(table=f"{schema}.{view.name}", role=role).encode())


async def lock_view(connection: AsyncConnection[TupleRow], name: str) -> list[StandIn]:
    """Lock the relations that show a view and return its stand-ins. A stand-in is locked before the table, as queries do."""
    stand_ins = await _stand_ins(connection, name)
    for stand_in in stand_ins:
        await connection.execute(f"LOCK TABLE {stand_in.schema}.{name} IN ACCESS EXCLUSIVE MODE".encode())
    row = await (await connection.execute("SELECT to_regclass(%s) IS NOT NULL", (f"public.{name}",))).fetchone()
    if row and row[0]:
        await connection.execute(f"LOCK TABLE public.{name} IN ACCESS EXCLUSIVE MODE".encode())
    return stand_ins


async def _stand_ins(connection: AsyncConnection[TupleRow], name: str) -> list[StandIn]:
    return [StandIn(*row) for row in await (await connection.execute(_STAND_INS, (name,))).fetchall()]


async def drop_unused_schemas(database: Database) -> None:
    async with database.connection() as connection, connection.transaction():
        await hold_builds(connection)
        for (schema,) in await (await connection.execute(_UNUSED)).fetchall():
            await connection.execute(f"DROP SCHEMA {schema}".encode())

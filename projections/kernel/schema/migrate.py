"""Migrations: they bring the database to the schema that this code expects, under an advisory lock.

While an older build is running, migrations only add to the schema. What it needs is removed later, by a migration that contracts
the schema.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow

from projections.kernel.database.database import APP_ROLE, Database
from projections.kernel.schema.builds import BUILD, OlderBuildsRun, admit, is_newest, shut_out_older

_log = logging.getLogger(__name__)
_PROJECTIONS = Path(__file__).parents[2]
_LOCK = 0x6D656469616C6564  # "medialed"
_MIGRATIONS = """
CREATE TABLE IF NOT EXISTS migrations (
    name       text        PRIMARY KEY,
    sha256     text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""
_MAY_MIGRATE = """
SELECT CASE WHEN m.oid IS NULL THEN has_schema_privilege(session_user, 'public', 'CREATE')
    ELSE pg_has_role(session_user, m.relowner, 'USAGE') END
FROM (SELECT to_regclass('public.migrations') AS oid) f LEFT JOIN pg_class m ON m.oid = f.oid
"""

# A partition is read and written through its table, whose grants apply.
_ONLY_THROUGH_PARENTS = f"""
DO $$
DECLARE
    partition regclass;
BEGIN
    FOR partition IN SELECT oid FROM pg_class WHERE relispartition AND relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
        EXECUTE format('REVOKE ALL ON %s FROM {APP_ROLE}', partition);
    END LOOP;
END $$;
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """A step of the schema: applied once, identified by its name, and never edited.

    A step that `contracts` drops, renames or narrows something that an older build uses, so it waits until no older build is
    running. The steps after it do not wait.
    """

    name: str
    statements: str
    contracts: bool = False

    @classmethod
    def read(cls, name: str, path: str, *, contracts: bool = False) -> Migration:
        """Return a migration from the SQL file at `path`, relative to the package `projections`."""
        return cls(name, (_PROJECTIONS / path).read_text(), contracts)

    @property
    def sha256(self) -> str:
        return sha256(self.statements.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Grant:
    """The rights of the application's role on one table, sequence or function.

    Without a grant the role may read and write a table, and may not use a sequence. `on` is an object such as `TABLE events`,
    `rights` are rights such as `SELECT, INSERT`.
    """

    on: str
    rights: str


class MigrationEdited(Exception):
    """Raised when a migration was edited after it was applied to this database."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"migrations were edited after they were applied to this database: {', '.join(names)}")


async def migrate(database: Database, steps: Sequence[Migration], *, build: int = BUILD, lock_wait: float = 3.0) -> list[str]:
    """Apply the missing steps in their order, and return their names. Raise `MigrationEdited` and `BuildTooOld`.

    A step that changes a table waits for its readers, and later transactions queue behind the step. So it waits for `lock_wait`
    seconds, lets all of them pass, and tries again.
    """
    connection = await database.connect("migrate", seconds=None)
    try:
        await connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        await admit(connection, build)
        await connection.execute(_MIGRATIONS)
        cursor = await connection.execute("SELECT name, sha256 FROM migrations")
        applied_hashes: dict[str, str] = dict(await cursor.fetchall())
        if edited := [step.name for step in steps if applied_hashes.get(step.name, step.sha256) != step.sha256]:
            raise MigrationEdited(edited)
        applied = []
        for step in (step for step in steps if step.name not in applied_hashes):
            try:
                while not await _apply(connection, step, build=build, lock_wait=lock_wait):
                    _log.warning("migration %s is waiting for a lock on a table that is in use; trying again", step.name)
                    await asyncio.sleep(lock_wait)
            except OlderBuildsRun as older:
                _log.warning("%s", older)
            else:
                applied.append(step.name)
        return applied
    finally:
        await connection.close()


async def waiting(database: Database, steps: Sequence[Migration]) -> list[str]:
    """Return the names of the steps that wait until no older build is running."""
    applied_names = {name for (name,) in await database.rows("SELECT name FROM migrations")}
    return [step.name for step in steps if step.name not in applied_names]


async def _apply(connection: AsyncConnection[TupleRow], step: Migration, *, build: int, lock_wait: float) -> bool:
    try:
        async with connection.transaction():
            await connection.execute("SELECT set_config('lock_timeout', %s, true)", (f"{lock_wait:.3f}s",))
            if step.contracts:
                await shut_out_older(connection, build, because=f"migration {step.name}")
            await connection.execute(step.statements.encode())
            await connection.execute("INSERT INTO migrations (name, sha256) VALUES (%s, %s)", (step.name, step.sha256))
    except psycopg.errors.LockNotAvailable:
        return False
    return True


async def check_migrated(database: Database, steps: Sequence[Migration]) -> list[str]:
    """Return the names of the missing steps, except those that wait for older builds. This is for a user without the right to
    migrate. Raise `MigrationEdited`."""
    rows = await database.rows("SELECT to_regclass('public.migrations') IS NOT NULL")
    applied_hashes: dict[str, str] = dict(await database.rows("SELECT name, sha256 FROM migrations")) if rows[0][0] else {}
    if edited := [step.name for step in steps if applied_hashes.get(step.name, step.sha256) != step.sha256]:
        raise MigrationEdited(edited)
    return [step.name for step in steps if step.name not in applied_hashes and not step.contracts]


async def may_migrate(connection: AsyncConnection[TupleRow]) -> bool:
    """Return True if the user owns the tables or may create them. Such a user may also change what the log holds."""
    row = await (await connection.execute(_MAY_MIGRATE.encode())).fetchone()
    return row is not None and bool(row[0])


async def grant_application(database: Database, grants: Sequence[Grant], *, login: str | None = None, build: int = BUILD) -> bool:
    """Create the role that the running product assumes: it reads everything, and writes what `grants` permit.

    An older build keeps the rights that a newer one granted, since it does not know all tables. `login` is the user of the running
    product, if it is not the current user.

    Return False if the database user may not create roles; only the log's triggers then protect it.
    """
    connection = await database.connect("grants", seconds=None)
    try:
        await connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        if not await _role_exists(connection):
            await connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(APP_ROLE)))
        if not await _may_take_on(connection, login):
            user = sql.SQL("CURRENT_USER") if login is None else sql.Identifier(login)
            await connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(APP_ROLE), user))
        if await is_newest(connection, build):
            await connection.execute("".join(_statements(grants)).encode())
    except psycopg.errors.InsufficientPrivilege:
        return False
    else:
        return True
    finally:
        await connection.close()


async def _role_exists(connection: AsyncConnection[TupleRow]) -> bool:
    cursor = await connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (APP_ROLE,))
    return await cursor.fetchone() is not None


async def _may_take_on(connection: AsyncConnection[TupleRow], login: str | None) -> bool:
    cursor = await connection.execute("SELECT pg_has_role(coalesce(%s, current_user), %s, 'MEMBER')", (login, APP_ROLE))
    row = await cursor.fetchone()
    return bool(row and row[0])


def _statements(grants: Sequence[Grant]) -> Iterator[str]:
    yield f"GRANT USAGE ON SCHEMA public TO {APP_ROLE};"
    yield f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {APP_ROLE};"
    yield _ONLY_THROUGH_PARENTS
    for grant in (*(Grant(f"TABLE {table}", "SELECT") for table in ("migrations", "min_build")), *grants):
        yield f"REVOKE ALL ON {grant.on} FROM {APP_ROLE};"
        yield f"GRANT {grant.rights} ON {grant.on} TO {APP_ROLE};"

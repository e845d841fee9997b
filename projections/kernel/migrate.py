"""Brings the database to the schema that this code expects: once, whoever starts first, under an advisory lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow

from projections.kernel.database import APP_ROLE, Database

_LOCK = 0x6D656469616C6564  # "medialed"


@dataclass(frozen=True, slots=True)
class Migration:
    """One step, applied once and for ever known by its name."""

    name: str
    statements: str


async def migrate(database: Database, steps: Sequence[Migration]) -> list[str]:
    """Apply the steps that are missing, in their order; the names of those applied."""
    connection = await database.connect("migrate")
    try:
        await connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
        )
        cursor = await connection.execute("SELECT name FROM migrations")
        known = {name for (name,) in await cursor.fetchall()}
        missing = [step for step in steps if step.name not in known]
        for step in missing:
            async with connection.transaction():
                await connection.execute(step.statements.encode())
                await connection.execute("INSERT INTO migrations (name) VALUES (%s)", (step.name,))
        return [step.name for step in missing]
    finally:
        await connection.close()


async def grant_application(database: Database) -> bool:
    """Make the role that the running product takes on: it reads everything, writes views, and only ever adds to the log.

    False where the database user may not create roles; the log's triggers then guard alone.
    """
    connection = await database.connect("grants")
    try:
        await connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        if not await _role_exists(connection):
            await connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(APP_ROLE)))
        if not await _may_take_on(connection):
            await connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(APP_ROLE)))
        await connection.execute(_GRANTS.encode())
    except psycopg.errors.InsufficientPrivilege:
        return False
    else:
        return True
    finally:
        await connection.close()


async def _role_exists(connection: AsyncConnection[TupleRow]) -> bool:
    cursor = await connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (APP_ROLE,))
    return await cursor.fetchone() is not None


async def _may_take_on(connection: AsyncConnection[TupleRow]) -> bool:
    cursor = await connection.execute("SELECT pg_has_role(current_user, %s, 'MEMBER')", (APP_ROLE,))
    found = await cursor.fetchone()
    return bool(found and found[0])


_GRANTS = f"""
GRANT USAGE ON SCHEMA public TO {APP_ROLE};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {APP_ROLE};
REVOKE UPDATE, DELETE, TRUNCATE ON events FROM {APP_ROLE};
REVOKE UPDATE, DELETE, TRUNCATE ON logbook FROM {APP_ROLE};
REVOKE INSERT, DELETE, TRUNCATE ON log_head FROM {APP_ROLE};
REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON migrations FROM {APP_ROLE};
GRANT USAGE ON SEQUENCE archiver_stream_numbers, job_numbers TO {APP_ROLE};
"""


async def master_key_fits(database: Database, fingerprint: str, *, previous: str | None = None) -> bool:
    """Whether the master keys of these fingerprints open all that the database holds; the first key that comes is the one. While a
    key is replaced (projections/vault/rotation.py) it takes both, the new one and the previous one."""
    await database.execute("INSERT INTO sealed_with (fingerprint) VALUES (%s) ON CONFLICT DO NOTHING", (fingerprint,))
    found = await database.row("SELECT fingerprint, previous FROM sealed_with")
    return found is not None and {mark for mark in found if mark is not None} <= {fingerprint, previous}

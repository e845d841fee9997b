"""The roles of the embedded server, and the product's database.

The superuser is used only at the start, to create what is missing. `medialedger_owner` owns the database and migrates it.
`medialedger` is the product's login: neither superuser nor owner, it only has the privileges of `medialedger_app`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, LiteralString

import psycopg
from psycopg import sql

DATABASE: Final = "medialedger"
OWNER: Final = "medialedger_owner"
LOGIN: Final = "medialedger"
_APPLICATION: Final = "medialedger_app"
"""The role to which the migrations grant privileges."""

_MISSING: Final = "SELECT NOT EXISTS (SELECT FROM pg_roles WHERE rolname = %s)"
_CHANGED: Final = """
SELECT EXISTS (SELECT FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole WHERE r.rolname = session_user)
"""
_REVOKE: Final = """
DO $$
DECLARE
    one regprocedure;
BEGIN
    FOR one IN
        SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND (proname LIKE 'lo\\_%' OR proname = 'lowrite')
            AND has_function_privilege('public', oid, 'EXECUTE')
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one);
    END LOOP;
    IF has_database_privilege('public', current_database(), 'TEMPORARY') THEN
        EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
    END IF;
END $$
"""
_OPTIONS: Final = sql.SQL("NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS")


def bring_up(superuser: str, password_of: Callable[[str], str]) -> None:
    """Create the roles and the database that are missing, and set the passwords. A standby gets them from its primary."""
    with psycopg.connect(superuser, autocommit=True, connect_timeout=10) as connection:
        if _holds(connection, "SELECT pg_is_in_recovery()"):
            return
        with connection.transaction():
            for role in (OWNER, LOGIN, _APPLICATION):
                if _holds(connection, _MISSING, (role,)):
                    connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN {}").format(sql.Identifier(role), _OPTIONS))
            for role in (OWNER, LOGIN):
                login = sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}")
                connection.execute(login.format(sql.Identifier(role), sql.Literal(password_of(role))))
            connection.execute(sql.SQL("ALTER ROLE {} RESET ALL").format(sql.Identifier(LOGIN)))
            connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(_APPLICATION), sql.Identifier(LOGIN)))
        if _holds(connection, "SELECT NOT EXISTS (SELECT FROM pg_database WHERE datname = %s)", (DATABASE,)):
            create = sql.SQL("CREATE DATABASE {} OWNER {}")
            connection.execute(create.format(sql.Identifier(DATABASE), sql.Identifier(OWNER)))


def restrict(superuser: str) -> None:
    """Restrict the product's database. By default every role may create large objects and temporary tables, which fill the disk and
    are not visible in any view. The login may also have changed its own settings there."""
    with psycopg.connect(superuser, autocommit=True, connect_timeout=10) as connection:
        if _holds(connection, "SELECT pg_is_in_recovery()"):
            return
        reset = sql.SQL("ALTER ROLE {} IN DATABASE {} RESET ALL")
        connection.execute(reset.format(sql.Identifier(LOGIN), sql.Identifier(DATABASE)))
        connection.execute(_REVOKE)


def is_unchanged(product: str) -> bool:
    """Return True if the login opens the database and has no settings of its own. A role may change both its password and its
    settings."""
    try:
        with psycopg.connect(product, connect_timeout=10) as connection:
            return not _holds(connection, _CHANGED)
    except psycopg.Error:
        return False


def _holds(connection: psycopg.Connection, question: LiteralString, parameters: Sequence[str] = ()) -> bool:
    row = connection.execute(question, parameters).fetchone()
    return row is not None and bool(row[0])

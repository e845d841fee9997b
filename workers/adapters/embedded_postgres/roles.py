"""The roles of the embedded server, and the product's database.

The superuser is for bring-up only: it makes what is missing. `medialedger_owner` owns the database and migrates it. `medialedger`
is the product's login: neither superuser nor owner, it has the rights of `medialedger_app` only.
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
"""The role that the migrations grant rights to."""

_MISSING: Final = "SELECT NOT EXISTS (SELECT FROM pg_roles WHERE rolname = %s)"
_OPTIONS: Final = sql.SQL("NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS")


def bring_up(superuser: str, password_of: Callable[[str], str]) -> None:
    """Make the roles and the database that are missing, and set the passwords. A standby gets them from its primary."""
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
            connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(_APPLICATION), sql.Identifier(LOGIN)))
        if _holds(connection, "SELECT NOT EXISTS (SELECT FROM pg_database WHERE datname = %s)", (DATABASE,)):
            create = sql.SQL("CREATE DATABASE {} OWNER {}")
            connection.execute(create.format(sql.Identifier(DATABASE), sql.Identifier(OWNER)))


def _holds(connection: psycopg.Connection, question: LiteralString, parameters: Sequence[str] = ()) -> bool:
    row = connection.execute(question, parameters).fetchone()
    return row is not None and bool(row[0])

"""A PostgreSQL server for each process of the test run, started by the first test that needs it, on a copy of a home that is
made once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final, LiteralString, NamedTuple

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow

from api.wiring.core import prepare
from projections.kernel.database.database import APP_ROLE
from projections.log.partitions import EVENTS_PER_PARTITION, MAKE_ROOM
from tests.support.postgres_homes import copied, made_once
from workers.adapters.embedded_postgres import EmbeddedPostgres

FAST = {"fsync": "off", "full_page_writes": "off"}
_TEMPLATE: Final = "migrated_template"

# Tables are found, not named, so that a new one needs no entry here; those that are kept are filled by the migrations.
# A few rows are deleted; TRUNCATE makes new files for the table and each of its indexes, so it is for what has grown.
_EMPTY: LiteralString = """
DO $$
DECLARE
    name regclass;
    filled boolean;
BEGIN
    PERFORM set_config('session_replication_role', 'replica', true);  -- the log's own triggers would refuse
    FOR name IN
        SELECT oid FROM pg_class
        WHERE relkind = 'r' AND relnamespace IN ('public'::regnamespace, 'event_partitions'::regnamespace)
            AND relname NOT IN ('log_identity', 'log_partitions', 'migrations', 'min_build', 'view_versions')
    LOOP
        EXECUTE 'SELECT EXISTS (SELECT FROM ' || name || ')' INTO filled;
        CONTINUE WHEN NOT filled;
        IF pg_relation_size(name) < 1048576 THEN
            EXECUTE 'DELETE FROM ' || name;
        ELSE
            EXECUTE 'TRUNCATE ' || name || ' CASCADE';
        END IF;
    END LOOP;
    PERFORM setval(seqrelid, seqstart, false) FROM pg_sequence WHERE pg_sequence_last_value(seqrelid) IS NOT NULL;
END $$
"""


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the server's database, as its superuser. A connection may take as long as a busy machine needs for it."""
    home = tmp_path_factory.mktemp("postgres")
    server = EmbeddedPostgres(copied(made_once(tmp_path_factory.getbasetemp(), "migrated", make=migrated_server), home))
    try:
        yield make_conninfo(server.start(), connect_timeout=60)
    finally:
        server.stop()


def migrated_server(home: Path) -> None:
    """With the product's schema in the server's database, and in one to be copied. Made in a thread, which has no event loop."""
    server = EmbeddedPostgres(home)
    try:
        address = make_conninfo(server.start(), connect_timeout=60)
        (server.data / "pg_hba.conf").write_text("local all all trust\n")
        with psycopg.connect(address, autocommit=True) as connection:
            for name, value in FAST.items():
                connection.execute(f"ALTER SYSTEM SET {name} = {value}".encode())
            connection.execute("SELECT pg_reload_conf()")
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(_TEMPLATE)))
        with ThreadPoolExecutor(1) as thread:
            for each in (address, make_conninfo(address, dbname=_TEMPLATE)):
                thread.submit(asyncio.run, prepare(each)).result()
    finally:
        server.stop()


@contextmanager
def new_database(postgres: str, name: str, *, template: str = "template1") -> Iterator[str]:
    """The address of a database without a table, or of a copy of the template, for a test that changes what others share."""
    identifier = sql.Identifier(name)
    with psycopg.connect(postgres, autocommit=True) as connection:
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        connection.execute(create.format(identifier, sql.Identifier(template)))
    try:
        yield make_conninfo(postgres, dbname=name)
    finally:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))


class Logins(NamedTuple):
    """The addresses of a database: for the owner of its tables, and for the running product."""

    owner: str
    product: str


@contextmanager
def two_logins(postgres: str, name: str) -> Iterator[Logins]:
    """A new database, with two roles that have no other right in the server: `<name>_owner` and `<name>_product`."""
    owner, product = f"{name}_owner", f"{name}_product"
    with psycopg.connect(postgres, autocommit=True) as connection, new_database(postgres, name) as url:
        for role in (owner, product):
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
        if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (APP_ROLE,)).fetchone() is None:
            connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(APP_ROLE)))
        connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(APP_ROLE), sql.Identifier(product)))
        connection.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(sql.Identifier(name), sql.Identifier(owner)))
        yield Logins(make_conninfo(url, user=owner), make_conninfo(url, user=product))
        with psycopg.connect(url, autocommit=True) as inside:
            inside.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(owner)))
        connection.execute(sql.SQL("ALTER DATABASE {} OWNER TO CURRENT_USER").format(sql.Identifier(name)))
        for role in (product, owner):
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


@pytest.fixture(scope="session")
async def migrated(postgres: str) -> tuple[str, str | None]:
    """Return the address of a database with the product's schema, and the role that the running product takes."""
    role = await prepare(postgres)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(MAKE_ROOM, (None, EVENTS_PER_PARTITION))
    return postgres, role


@pytest.fixture(scope="session")
def migrated_template(postgres: str) -> str:
    """The name of a database with the product's schema, to be copied: that takes a fifth of the time of its migrations."""
    return _TEMPLATE


@pytest.fixture
def database_url(migrated: tuple[str, str | None]) -> str:
    """An empty log and empty views."""
    empty(migrated[0])
    return migrated[0]


def empty(conninfo: str) -> None:
    asked(conninfo, _EMPTY.encode())


def asked(conninfo: str, question: bytes, parameters: Sequence[object] = ()) -> psycopg.Cursor[TupleRow]:
    """On a connection that is kept, since many tests ask again and again: a new one is a process of the server."""
    try:
        return _kept(conninfo).execute(question, parameters)
    except psycopg.OperationalError:  # the server was stopped, or a test has ended all connections
        if not _kept(conninfo).closed:
            raise
        _kept.cache_clear()
        return _kept(conninfo).execute(question, parameters)


@cache
def _kept(conninfo: str) -> psycopg.Connection[TupleRow]:
    """Return a connection without prepared statements, because tests recreate tables."""
    return psycopg.connect(conninfo, autocommit=True, application_name="tests", prepare_threshold=None)

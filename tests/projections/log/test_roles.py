"""The rights of the database's roles on the log: the running product calls log_append(), and nobody changes what is there."""

from __future__ import annotations

import psycopg
import pytest

from projections.kernel.database import arrays
from projections.kernel.database.database import APP_ROLE
from projections.log.append import Appender
from projections.log.recorder import send_events
from projections.log.statement import WriteSet, statement
from tests.projections.log.helpers import event, rows, whole, write_of


@pytest.fixture
async def two_events(appender: Appender) -> None:
    """Appended under the role of the running product."""
    await appender.append(write_of("test:a"))
    await appender.append(write_of("test:b"))


FORBIDDEN = [
    "UPDATE events SET topic = 'x'",
    "DELETE FROM events",
    "TRUNCATE events",
    "INSERT INTO events SELECT * FROM events WHERE false",
    "SELECT FROM events FOR UPDATE",
    "SELECT FROM event_partitions.events_1",
    "INSERT INTO event_partitions.events_1 SELECT * FROM events",
    "DELETE FROM event_partitions.events_1",
    "INSERT INTO stream_versions SELECT gen_random_uuid(), 1, 1",
    "UPDATE stream_versions SET position = 1",
    "DELETE FROM stream_versions",
    "INSERT INTO log_partitions VALUES (1000, 1)",
    "DELETE FROM log_partitions",
    "SELECT log_make_partitions(10, 10)",
    "BEGIN; LOCK TABLE log_partitions IN ROW SHARE MODE",
    "UPDATE commits SET root = chain_hash",
    "DELETE FROM commits",
    "TRUNCATE commits",
    "INSERT INTO commits SELECT * FROM commits WHERE false",
    "UPDATE log_identity SET log_id = gen_random_uuid()",
    "DELETE FROM log_identity",
    "SELECT FROM log_identity FOR UPDATE",
    "SELECT FROM log_identity FOR KEY SHARE",
    "BEGIN; LOCK TABLE log_identity IN ROW SHARE MODE",
    "BEGIN; LOCK TABLE commits IN ROW SHARE MODE",
    "CREATE OR REPLACE FUNCTION log_append() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "DROP TABLE events",
    "ALTER TABLE events DISABLE TRIGGER ALL",
    "SET session_replication_role = replica",
    "DELETE FROM migrations",
    "CREATE TABLE shadow (x int)",
]


@pytest.mark.parametrize("statement", FORBIDDEN)
@pytest.mark.usefixtures("two_events")
async def test_the_role_of_the_running_product_cannot_change_the_past(database_url: str, statement: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"SET ROLE {APP_ROLE}".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.encode())
    assert whole(database_url) == 2


TABLES = ("events", "event_partitions.events_1", "stream_versions", "commits", "log_identity", "log_partitions", "log_seals")


@pytest.mark.parametrize("statement", [f"{verb} {table}" for verb in ("DELETE FROM", "TRUNCATE") for table in TABLES])
@pytest.mark.usefixtures("two_events")
async def test_even_the_owner_is_stopped_by_the_logs_own_trigger(database_url: str, statement: str) -> None:
    with (
        psycopg.connect(database_url, autocommit=True) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"),
    ):
        connection.execute(statement.encode())
    assert whole(database_url) == 2


_TEMPORARY_TABLES = f"""
DO $$ BEGIN EXECUTE format('{{}} TEMPORARY ON DATABASE %I {{}} {APP_ROLE}', current_database()); END $$
"""


@pytest.mark.usefixtures("two_events")
async def test_tables_of_the_caller_do_not_take_the_place_of_the_logs_own(database_url: str) -> None:
    """The function runs as its owner, so it must not be led to tables or functions that somebody else made."""
    text, parameters = statement([WriteSet([event("test:c")])])
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(_TEMPORARY_TABLES.format("GRANT", "TO").encode())  # as where PostgreSQL is not the embedded one
        arrays.register(connection)
        send_events(connection)
        connection.execute(f"SET ROLE {APP_ROLE}".encode())
        for table in ("events", "stream_versions", "commits", "log_identity", "log_partitions", "log_seals"):
            connection.execute(f"CREATE TEMPORARY TABLE {table} AS SELECT * FROM public.{table}".encode())
        connection.execute("SET search_path = pg_temp, public")
        assert connection.execute(text.encode(), parameters, binary=True).fetchone()[0] == 3  # type: ignore[index]
        assert connection.execute("SELECT count(*) FROM pg_temp.events").fetchone() == (2,)
        connection.execute("RESET ROLE")
        connection.execute(_TEMPORARY_TABLES.format("REVOKE", "FROM").encode())
    assert whole(database_url) == 3


async def test_only_the_products_roles_may_call_the_function(database_url: str) -> None:
    grantees = rows(
        database_url,
        "SELECT grantee = proowner, grantee::regrole::text FROM pg_proc, aclexplode(proacl) WHERE proname = 'log_append' "
        "ORDER BY 1",
    )
    assert [owner for owner, _ in grantees] == [False, True]
    assert grantees[0][1] == APP_ROLE

"""Two logins: the owner of the tables, who migrates, and the product's own, which can do nothing to the log but append."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from api.wiring.catalogue import DAY_TABLES, views
from api.wiring.core import Core, _rebuilder, core, prepare
from api.wiring.startup import StartError
from projections.kernel.database.database import APP_ROLE, Database
from projections.kernel.sql.partitions import cover, drop_before
from tests.projections.log.helpers import rows
from tests.support.application import introduce
from tests.support.clock import HandClock
from tests.support.postgres import Logins, new_database, two_logins


@pytest.fixture(scope="module")
def logins(postgres: str) -> Iterator[Logins]:
    with two_logins(postgres, "two_logins") as made:
        yield made


@pytest.fixture(scope="module")
async def ready(logins: Logins) -> Logins:
    assert await prepare(logins.product, owner=logins.owner) == APP_ROLE
    return logins


@pytest.fixture
async def product(ready: Logins) -> AsyncIterator[Core]:
    """Yield a core that has only the product's login, like a process of the product."""
    wired = core(ready.product, role=await prepare(ready.product), clock=HandClock())
    await wired.start()
    try:
        yield wired
    finally:
        await wired.stop()


FORBIDDEN = [
    "UPDATE events SET topic = 'x'",
    "DELETE FROM events",
    "TRUNCATE events",
    "DROP TABLE events",
    "ALTER TABLE events DISABLE TRIGGER ALL",
    "INSERT INTO events SELECT * FROM events WHERE false",
    "DELETE FROM commits",
    "UPDATE commits SET root = chain_hash",
    "TRUNCATE commits",
    "DROP TABLE commits",
    "DELETE FROM stream_versions",
    "UPDATE stream_versions SET position = 1",
    "DROP TABLE stream_versions",
    "UPDATE log_identity SET log_id = gen_random_uuid()",
    "DELETE FROM log_seals",
    "INSERT INTO log_seals SELECT * FROM log_seals WHERE false",
    "DELETE FROM log_epochs",
    "INSERT INTO log_epochs (epoch, since_position, reason) VALUES (9, 0, 'x')",
    "DELETE FROM logbook",
    "DROP TABLE logbook",
    "TRUNCATE event_view",
    "DROP TABLE event_view",
    "CREATE TABLE mine (a integer)",
    "CREATE SCHEMA mine",
    "CREATE FUNCTION mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "CREATE OR REPLACE FUNCTION stream_key(stream text) RETURNS uuid LANGUAGE sql AS 'SELECT gen_random_uuid()'",
    "ALTER FUNCTION log_append OWNER TO CURRENT_USER",
    "CREATE ROLE other",
    "ALTER ROLE two_logins_owner PASSWORD 'x'",
    "GRANT two_logins_owner TO two_logins_product",
    "SET ROLE two_logins_owner",
    "SET SESSION AUTHORIZATION two_logins_owner",
    "SET session_replication_role = replica",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "COPY (SELECT 1) TO '/tmp/medialedger-test'",
    "COPY logbook FROM '/etc/passwd'",
    "SELECT pg_read_file('postgresql.conf')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT log_make_partitions(10, 10)",
    "SELECT begin_day_change()",
    "ALTER SYSTEM SET jit = on",
    "CREATE DATABASE other",
]


@pytest.mark.parametrize(
    "first", [[], [f"SET ROLE {APP_ROLE}"], [f"SET ROLE {APP_ROLE}", "RESET ROLE"]], ids=["login", "role", "reset"]
)
async def test_the_products_login_cannot_change_the_past(ready: Logins, first: list[str]) -> None:
    """This holds with the role and after leaving it: the login has no other rights."""
    with psycopg.connect(ready.product, autocommit=True) as connection:
        for statement in FORBIDDEN:
            for part in ("RESET ROLE", *first):
                connection.execute(part.encode())
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())


async def test_the_product_login_appends_and_reads(product: Core) -> None:
    await introduce(product, "desk", "operator")
    assert await product.directory.find("desk") is not None


async def test_the_product_login_makes_partitions_of_days_ahead_and_drops_old_ones(product: Core, ready: Logins) -> None:
    now = datetime(2021, 3, 1, tzinfo=UTC)
    connection = await product.database.connect("retention")
    for table in DAY_TABLES:
        assert await cover(connection, table, now=now, days=1)
        assert await drop_before(connection, table, before=now + timedelta(days=2))
    await connection.close()
    made = "SELECT count(*) FROM pg_class WHERE relispartition AND relkind = 'r' AND position(%s in relname) > 0"
    assert rows(ready.owner, made, "_20210301_") == [(0,)]
    assert rows(ready.owner, made, "_20210303_") == [(len(DAY_TABLES),)]


async def test_the_product_login_makes_partitions_of_the_log_ahead(product: Core) -> None:
    before = product.partitions.free
    await product.partitions.make()
    assert product.partitions.free >= before > 0


@pytest.mark.parametrize("table", ["events", "commits", "pg_class", "logbook_default", "x; DROP TABLE logbook", "event_view", ""])
async def test_the_functions_of_partitions_accept_tables_of_days_only(ready: Logins, table: str) -> None:
    with psycopg.connect(ready.product, autocommit=True) as connection:
        for call in (
            "SELECT make_day_partition(%s, '2021-01-01', '2021-01-02', 1)",
            "SELECT drop_day_partition(%s, '2021-01-01')",
            "SELECT delete_from_default(%s, now(), 10)",
        ):
            with pytest.raises(psycopg.errors.InvalidParameterValue):
                connection.execute(call.encode(), (table,))


async def test_the_functions_of_partitions_keep_today_and_later_days(ready: Logins) -> None:
    with psycopg.connect(ready.product, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO logbook (recorded_at, level, message, username) VALUES (now() + interval '50 days', 2, 'x', 'a')"
        )
        while (connection.execute("SELECT first_day FROM drop_day_partition('logbook', 'infinity')").fetchone() or (None,))[0]:
            pass
        assert connection.execute("SELECT delete_from_default('logbook', 'infinity', 100)").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM logbook").fetchone() == (1,)
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            connection.execute("SELECT make_day_partition('logbook', current_date, current_date + 400, 1)")


async def test_tables_of_the_caller_do_not_take_the_place_of_those_that_the_functions_use(ready: Logins) -> None:
    with psycopg.connect(ready.product, autocommit=True) as connection:
        connection.execute("CREATE TEMP TABLE pg_class (relname name, relnamespace oid, oid oid)")
        connection.execute("CREATE TEMP TABLE logbook_default (recorded_at timestamptz)")
        connection.execute("SET search_path = pg_temp, public")
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            connection.execute("SELECT make_day_partition('events', '2021-01-01', '2021-01-02', 1)")
        connection.execute("SELECT delete_from_default('logbook', now(), 10)")


async def test_the_owner_rebuilds_a_view_while_the_product_writes(product: Core, ready: Logins) -> None:
    view = next(view for view in views().all if view.name == "client_view")
    await introduce(product, "before", "operator")
    async with Database.of_owner(ready.owner, size=4) as owner:
        await _rebuilder(owner, APP_ROLE).rebuild(view)
    await introduce(product, "after", "operator")
    stored_rows = rows(ready.product, "SELECT name FROM client_view WHERE name IN ('before', 'after') ORDER BY name")
    assert stored_rows == [("after",), ("before",)]


async def test_a_login_that_may_not_migrate_starts_only_where_everything_is_done(postgres: str, ready: Logins) -> None:
    assert await prepare(ready.product) == APP_ROLE
    with new_database(postgres, "not_migrated") as url:
        bare = make_conninfo(url, user=conninfo_to_dict(ready.product)["user"])
        with pytest.raises(StartError, match=r"lacks 0001 log, .* run `medialedger migrate` with MEDIALEDGER_OWNER_DATABASE_URL"):
            await prepare(bare)
    with psycopg.connect(ready.owner, autocommit=True) as connection:
        change = "UPDATE view_versions SET version = %s WHERE name = 'client_view'"
        connection.execute(change.encode(), (0,))
        try:
            with pytest.raises(StartError, match="lacks client_view, and"):
                await prepare(ready.product)
        finally:
            connection.execute(change.encode(), (views().by_name["client_view"].version,))

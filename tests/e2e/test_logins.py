"""`medialedger` with its own login on an operator's PostgreSQL, and with the owner's."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.support.postgres import Logins, two_logins
from tests.support.product import Product, Products, client, migrated_home
from workers.adapters.embedded_postgres import EmbeddedPostgres

KEY = "a-key-of-an-operator"
FORBIDDEN = ("DELETE FROM events", "RESET ROLE; DROP TABLE events", "COPY (SELECT 1) TO PROGRAM 'true'", "CREATE ROLE other")
WARNING = "owns the tables, so anyone who can run SQL as it can change the event log"


@pytest.fixture(scope="module")
def logins(postgres: str) -> Iterator[Logins]:
    with two_logins(postgres, "served") as made:
        yield made


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with the master key of that database."""
    return tmp_path_factory.mktemp("served") / "home"


def used(product: Product) -> str:
    """Stop the product after a write and a read, and return its log output."""
    with client(product, KEY) as http:
        event = http.post("/api/event/", json={"title": "Final"}).raise_for_status().json()["id"]
        assert http.get(f"/api/event/{event}").json()["title"] == "Final"
        assert http.get("/api/audit/verify").json()["valid"]
    product.signal(signal.SIGTERM)
    assert product.ended() == 0
    return product.errors


@pytest.mark.long
def test_the_product_runs_without_rights_on_the_log(started: Products, logins: Logins, home: Path) -> None:
    """The owner migrates; afterwards not even the address of the owner is needed."""
    refused = started.start(home, "api", database_url=logins.product, admin_api_key=KEY)
    assert refused.ended() == 1
    assert "there is no medialedger in the database served" in refused.errors
    both = {"database_url": logins.product, "owner_database_url": logins.owner}
    assert WARNING not in used(started.start(home, "up", **both, admin_api_key=KEY).until_ready())
    assert WARNING not in used(started.start(home, "up", database_url=logins.product, admin_api_key=KEY).until_ready())
    assert started.start(home, "projections rebuild event", **both).ended() == 0
    assert WARNING not in used(started.start(home, "up", **both, api_processes="2").until_ready())


@pytest.mark.long
def test_with_the_owners_login_only_it_runs_and_warns_once(started: Products, logins: Logins, home: Path) -> None:
    product = started.start(home, "up", database_url=logins.owner, api_processes="2", worker_processes="1")
    product.until_ready().signal(signal.SIGTERM)
    assert product.ended() == 0
    assert product.errors.count(WARNING) == 1


def test_on_the_embedded_database_the_product_has_no_rights_on_the_log_either(started: Products, tmp_path: Path) -> None:
    product = started.start(migrated_home(tmp_path / "home"), admin_api_key=KEY).until_ready()
    server = EmbeddedPostgres(product.home)
    with psycopg.connect(server.attach(), autocommit=True) as superuser:
        users = superuser.execute(
            "SELECT DISTINCT usename FROM pg_stat_activity"
            " WHERE datname = 'medialedger' AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        ).fetchall()
    assert users == [("medialedger",)]
    with psycopg.connect(server.logins().product, autocommit=True) as connection:
        for statement in FORBIDDEN:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(make_conninfo(server.logins().owner, password="wrong"))
    environment = Path(f"/proc/{product.process.pid}/environ").read_bytes()
    assert b"postgresql://" not in environment
    assert WARNING not in used(product)

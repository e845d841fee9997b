"""Commands on a database that is missing, empty, foreign or newer: one line is printed, and nothing is created."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from api.cli.main import main
from api.wiring.core import Core
from projections.kernel.schema.builds import BUILD
from tests.support.feeding import event
from tests.support.postgres import new_database
from workers.adapters.embedded_postgres import EmbeddedPostgres

COMMANDS = (
    "audit verify",
    "audit show",
    "jobs list",
    "client list",
    "consumers list",
    "projections list",
    "builds",
    "restored",
    "load-sample",
    "migrate --status",
    "keys export --client a --content-id b --output c.xml",
)


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("MEDIALEDGER_HOME", str(home))
    (tmp_path / "master.key").write_bytes(b"k" * 32)
    (tmp_path / "master.key").chmod(0o600)
    monkeypatch.setenv("MEDIALEDGER_MASTER_KEY_FILE", str(tmp_path / "master.key"))
    return home


@pytest.fixture
def empty_database(postgres: str, empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with new_database(postgres, f"empty_{uuid4().hex[:8]}") as url:
        monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", url)
        yield url


@pytest.mark.parametrize("command", COMMANDS)
def test_a_home_that_is_not_there_is_not_made(command: str, empty_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == 1
    assert capsys.readouterr().err == (
        f"medialedger: there is no medialedger in {empty_home} (MEDIALEDGER_HOME); "
        "`medialedger up` or `medialedger migrate` creates one\n"
    )
    assert not empty_home.exists()


@pytest.mark.parametrize("command", [*COMMANDS, "api", "workers"])
def test_an_empty_database_stays_empty(command: str, empty_database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("medialedger: there is no medialedger in the database empty_")
    assert len(shown.splitlines()) == 1
    with psycopg.connect(empty_database) as connection:
        assert connection.execute("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace").fetchone() == (0,)


def test_the_tables_of_another_program_are_no_log(empty_database: str, capsys: pytest.CaptureFixture[str]) -> None:
    with psycopg.connect(empty_database) as connection:
        connection.execute("CREATE TABLE events (id integer)")
    assert main(["audit", "verify"]) == 1
    assert "there is no medialedger in" in capsys.readouterr().err


def test_client_add_makes_a_database(empty_database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["client", "add", "playout", "--role", "operator"]) == 0
    capsys.readouterr()
    assert main(["migrate", "--status"]) == 0
    assert "missing" not in capsys.readouterr().out


def test_a_newer_database_is_refused_with_one_line(empty_database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate"]) == 0
    with psycopg.connect(empty_database) as connection:
        connection.execute("UPDATE min_build SET build = %s, newest = %s, reason = 'a test'", (BUILD + 1, BUILD + 1))
    capsys.readouterr()
    for command in ("audit verify", "migrate", "migrate --status", "jobs list", "api", "up"):
        assert main(command.split()) == 1
        assert capsys.readouterr().err.endswith(
            f"medialedger: this is build {BUILD}, and the database needs build {BUILD + 1} or newer (a test)\n"
        )


def test_the_status_names_what_is_missing_and_changes_nothing(empty_database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate"]) == 0
    with psycopg.connect(empty_database) as connection:
        taken = connection.execute(
            "DELETE FROM migrations WHERE name = (SELECT max(name) FROM migrations) RETURNING name"
        ).fetchone()
        connection.execute("INSERT INTO migrations (name, sha256) VALUES ('zz_later', 'x')")
    assert taken is not None
    for _ in range(2):
        capsys.readouterr()
        assert main(["migrate", "--status"]) == 3
        shown = capsys.readouterr().out
        assert f"{taken[0]}  missing" in shown
        assert "zz_later  applied" in shown


async def test_verify_tells_a_broken_log_from_one_that_it_could_not_read(
    inner: Core, database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", database_url)
    await event(inner, 1)
    assert await asyncio.to_thread(main, ["audit", "verify"]) == 0
    with psycopg.connect(database_url) as owner:
        owner.execute("SET session_replication_role = replica")
        owner.execute("UPDATE events SET state = state || 'x'::bytea")
    assert await asyncio.to_thread(main, ["audit", "verify"]) == 3
    capsys.readouterr()
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    assert await asyncio.to_thread(main, ["audit", "verify"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_embedded_database_is_made_by_migrate(empty_home: Path) -> None:
    try:
        assert main(["migrate"]) == 0
        assert main(["audit", "verify"]) == 0
    finally:
        EmbeddedPostgres(empty_home).stop()


def test_a_database_without_a_table_is_one_line(
    postgres: str,
    migrated_template: str,
    empty_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The database was restored in part, or its user may not read the tables."""
    with new_database(postgres, "partial", template=migrated_template) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER TABLE migrations RENAME TO of_somebody_else")
        monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", url)
        assert main(["migrate", "--status"]) == 1
    assert capsys.readouterr().err == 'medialedger: the database refused: relation "migrations" does not exist\n'

"""`medialedger backup` and `medialedger restore`, as a person calls them."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from api.cli.command import NEEDS_ATTENTION
from api.cli.main import main
from api.wiring.core import Core, core, prepare
from api.wiring.quiet import quiet_mode
from api.wiring.startup import StartError
from domain.kernel.encryption import KeyRing
from projections.consumers.timeline import timeline
from projections.kernel.schema.builds import BUILD
from projections.vault.master_keys import master_key_fits
from tests.projections.consuming import consumer
from tests.projections.log.helpers import rows, until
from tests.support.feeding import event
from tests.support.postgres import Logins, new_database, two_logins
from tests.support.waiting import until as wait_until
from workers.adapters.backup_archive import DUMP, reading
from workers.adapters.embedded_postgres import EmbeddedPostgres

KEY = b"k" * 32


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home" / "media" / "film").mkdir(parents=True)
    (tmp_path / "home" / "media" / "film" / "a.mp4").write_bytes(b"x" * 100)
    (tmp_path / "home" / "master.key").write_bytes(KEY)
    (tmp_path / "home" / "master.key").chmod(0o600)
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def source(postgres: str, migrated_template: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with new_database(postgres, f"source_{uuid4().hex[:8]}", template=migrated_template) as url:
        monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", url)
        yield url


@pytest.fixture
def target(postgres: str) -> Iterator[str]:
    with new_database(postgres, f"target_{uuid4().hex[:8]}") as url:
        yield url


@asynccontextmanager
async def running(url: str) -> AsyncIterator[Core]:
    wired = core(url, role=await prepare(url))
    await wired.start()
    try:
        yield wired
    finally:
        await wired.stop()


@pytest.fixture
async def archive(source: str, tmp_path: Path) -> Path:
    async with running(source) as wired:
        await master_key_fits(wired.database, KeyRing(KEY))
        for number in range(1, 4):
            await event(wired, number)
        await consumer(wired, "webhooks", 3)
    path = tmp_path / "a.backup"
    assert await asyncio.to_thread(main, ["backup", str(path)]) == 0
    return path


def contents(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of every table that a restore does not change."""
    names = rows(
        url,
        "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition "
        "AND relnamespace = 'public'::regnamespace AND relname NOT IN ('builds', 'consumer_shards', 'log_epochs') ORDER BY 1",
    )
    return {name: rows(url, f"SELECT t::text FROM {name} AS t ORDER BY 1") for (name,) in names}


async def test_what_is_restored_is_what_was_there_and_a_new_epoch_begins(
    archive: Path, source: str, target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stat.S_IMODE(os.stat(archive).st_mode) == 0o600
    with reading(archive) as opened:
        assert (opened.manifest.media_files, opened.manifest.media_bytes) == (1, 100)
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", target)
    assert await asyncio.to_thread(main, ["restore", str(archive)]) == 0
    shown = capsys.readouterr().out
    assert "the log is intact: 3 events" in shown
    assert "epoch 2 of the log has begun after position 3" in shown
    assert contents(target) == contents(source)
    assert rows(target, "SELECT DISTINCT owner FROM consumer_shards") == [(None,)]
    grants = "SELECT relname, relacl::text FROM pg_class WHERE relname IN ('events', 'commits', 'min_build') ORDER BY 1"
    assert rows(target, grants) == rows(source, grants)
    functions = "SELECT proname, proacl::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1, 2"
    assert rows(target, functions) == rows(source, functions)
    async with running(target) as wired:
        assert (await timeline(wired.database)).origin.epoch == 2
        await event(wired, 4)
    assert await asyncio.to_thread(main, ["audit", "verify"]) == 0


async def test_the_copy_of_a_drill_is_quiet_before_anything_of_it_starts(
    archive: Path, target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", target)
    assert await asyncio.to_thread(main, ["restore", "--drill", str(archive)]) == 0
    assert "the copy is quiet" in capsys.readouterr().out
    async with running(target) as wired:
        assert (await quiet_mode(wired.database)).on
    assert await asyncio.to_thread(main, ["audit", "verify"]) == 0
    assert await asyncio.to_thread(main, ["status"]) == NEEDS_ATTENTION
    assert f"The installation is quiet (a drill with {archive.name})" in capsys.readouterr().out


@pytest.fixture
def logins(postgres: str) -> Iterator[Logins]:
    with two_logins(postgres, f"restored_{uuid4().hex[:8]}") as made:
        yield made


RIGHTS = """
SELECT name, coalesce(rolname, 'everybody'), privilege_type FROM (
    SELECT relname AS name, coalesce(relacl, acldefault('r', relowner)) AS acl FROM pg_class
    WHERE relnamespace IN ('public'::regnamespace, 'event_partitions'::regnamespace) AND relkind IN ('r', 'p', 'v', 'S')
    UNION ALL SELECT attname, attacl FROM pg_attribute WHERE attrelid >= 16384 AND attacl IS NOT NULL
    UNION ALL SELECT oid::regprocedure::text, coalesce(proacl, acldefault('f', proowner)) FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT nspname, coalesce(nspacl, acldefault('n', nspowner)) FROM pg_namespace
    WHERE nspname IN ('public', 'event_partitions')
) AS o, aclexplode(acl) AS a LEFT JOIN pg_roles ON oid = a.grantee
"""


async def test_after_a_restore_the_products_login_has_the_rights_of_a_new_database(
    logins: Logins, source: str, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The back-up grants more: the owner of the source has granted the log to the product's login."""
    login = conninfo_to_dict(logins.product)["user"]
    async with running(source) as wired:
        await event(wired, 1)
    with psycopg.connect(source) as connection:
        connection.execute(f"GRANT ALL ON events, commits TO {login}; GRANT UPDATE (state) ON events TO {login}".encode())
        connection.execute(f"GRANT ALL ON FUNCTION log_make_partitions, begin_day_change TO {login}".encode())
        connection.execute(f"GRANT CREATE ON SCHEMA public, event_partitions TO {login}".encode())
    path = tmp_path / "more.backup"
    assert await asyncio.to_thread(main, ["backup", str(path)]) == 0
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", logins.product)
    assert await asyncio.to_thread(main, ["restore", str(path)]) == 1
    assert "does not own the tables; set MEDIALEDGER_OWNER_DATABASE_URL" in capsys.readouterr().err
    monkeypatch.setenv("MEDIALEDGER_OWNER_DATABASE_URL", logins.owner)
    assert await asyncio.to_thread(main, ["restore", str(path)]) == 0
    with two_logins(postgres, f"new_{uuid4().hex[:8]}") as new:
        await prepare(new.product, owner=new.owner)
        assert rights(logins) == rights(new)
    async with running(logins.product) as wired:
        await event(wired, 2)


def rights(logins: Logins) -> list[tuple[str, ...]]:
    """Return the rights of all users except the owner."""
    owner, product = (conninfo_to_dict(address)["user"] for address in logins)
    result: list[tuple[str, ...]] = rows(logins.owner, RIGHTS)
    return sorted((name, "product" if role == product else role, right) for name, role, right in result if role != owner)


async def test_a_back_up_and_a_seal_need_the_owner(
    logins: Logins, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await prepare(logins.product, owner=logins.owner)
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", logins.product)
    commands = (["backup", str(tmp_path / "a.backup")], ["log", "seal"], ["restored"], ["projections", "rebuild", "event"])
    for command in commands:
        assert await asyncio.to_thread(main, command) == 1
        assert capsys.readouterr().err == (
            "medialedger: the database user does not own the tables; set MEDIALEDGER_OWNER_DATABASE_URL\n"
        )
    for command in (["log", "partitions"], ["migrate", "--status"], ["client", "list"], ["audit", "verify"]):
        assert await asyncio.to_thread(main, command) == 0
    monkeypatch.setenv("MEDIALEDGER_OWNER_DATABASE_URL", logins.owner)
    for command in commands:
        assert await asyncio.to_thread(main, command) == 0


async def test_a_back_up_under_writes_is_the_log_up_to_one_position(
    source: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b.backup"
    async with running(source) as wired:
        stop = False

        async def write() -> int:
            number = 0
            while not stop:
                number += 1
                await event(wired, number)
            return number

        writing = asyncio.create_task(write())
        await until(lambda: rows(source, "SELECT count(*) > 50 FROM events") == [(True,)])
        assert await asyncio.to_thread(main, ["backup", str(path)]) == 0
        stop = True
        written = await writing
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", target)
    assert await asyncio.to_thread(main, ["restore", str(path)]) == 0
    with reading(path) as archive:
        head = archive.manifest.head
    assert 50 < head <= written
    assert rows(target, "SELECT count(*), max(position) FROM events") == [(head, head)]
    assert await asyncio.to_thread(main, ["audit", "verify"]) == 0


async def test_the_home_of_an_embedded_database_is_made(
    archive: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The back-up may come from another embedded database, in which functions of PostgreSQL itself have other rights."""
    monkeypatch.delenv("MEDIALEDGER_DATABASE_URL")
    monkeypatch.setenv("MEDIALEDGER_MASTER_KEY_FILE", str(home / "master.key"))
    homes, again = (tmp_path / "new", tmp_path / "copy"), tmp_path / "again.backup"
    try:
        monkeypatch.setenv("MEDIALEDGER_HOME", str(homes[0]))
        assert await asyncio.to_thread(main, ["restore", str(archive)]) == 0
        assert "1 of 1 media files are not in" in capsys.readouterr().out
        assert await asyncio.to_thread(main, ["audit", "verify"]) == 0
        assert await asyncio.to_thread(main, ["restore", str(archive)]) == 1
        assert "the database is not empty" in capsys.readouterr().err
        assert await asyncio.to_thread(main, ["backup", str(again)]) == 0
        monkeypatch.setenv("MEDIALEDGER_HOME", str(homes[1]))
        assert await asyncio.to_thread(main, ["restore", str(again)]) == 0, capsys.readouterr().err
    finally:
        for made in homes:
            EmbeddedPostgres(made).stop()


def test_a_damaged_archive_is_refused_and_nothing_is_made(
    archive: Path, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = archive.read_bytes()
    with reading(archive) as opened, opened.dump() as dump:
        inside = whole.index(dump.read(64))
    for name, damaged in {
        "truncated": whole[:-100],
        "half": whole[: len(whole) // 2],
        "empty": b"",
        "flipped": whole[: inside + 500] + bytes([whole[inside + 500] ^ 1]) + whole[inside + 501 :],
        "another file": b"PGDMP" + bytes(1000),
    }.items():
        path = tmp_path / "damaged.backup"
        path.write_bytes(damaged)
        for url in (target, ""):
            monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", url)
            monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path / "new"))
            capsys.readouterr()
            assert main(["restore", str(path)]) == 1, name
            refused = capsys.readouterr().err
            assert refused.startswith(f"medialedger: {path} is not a back-up of medialedger, or is "), name
            assert len(refused.splitlines()) == 1
    assert not (tmp_path / "new").exists()
    assert rows(target, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace") == [(0,)]


async def test_a_dump_that_cannot_be_restored_leaves_the_database_empty(
    archive: Path, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A statement in the middle of the dump is refused."""
    with psycopg.connect(target) as connection:
        connection.execute("CREATE FUNCTION stream_key(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'")
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", target)
    assert await asyncio.to_thread(main, ["restore", str(archive)]) == 1
    assert capsys.readouterr().err.startswith("medialedger: psql: ")
    assert rows(target, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace") == [(0,)]


@pytest.mark.parametrize("key", [None, b"o" * 32])
def test_without_its_master_key_nothing_is_restored(
    archive: Path, home: Path, target: str, key: bytes | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = home / "master.key"
    place.unlink()
    if key is not None:
        place.write_bytes(key)
        place.chmod(0o600)
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", target)
    assert main(["restore", str(archive)]) == 1
    assert "master key" in capsys.readouterr().err
    assert place.exists() is (key is not None)
    assert rows(target, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace") == [(0,)]


def test_a_back_up_of_a_newer_build_is_refused(
    archive: Path, target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("api.cli.local.backup.BUILD", BUILD - 1)
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", target)
    assert main(["restore", str(archive)]) == 1
    assert f"was made by build {BUILD}" in capsys.readouterr().err


async def test_a_damaged_log_is_reported(
    archive: Path, source: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(source) as owner:
        owner.execute("SET session_replication_role = replica")
        owner.execute("UPDATE events SET state = state || 'x'::bytea WHERE position = 2")
    path = tmp_path / "tampered.backup"
    assert await asyncio.to_thread(main, ["backup", str(path)]) == 0
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", target)
    assert await asyncio.to_thread(main, ["restore", str(path)]) == 3
    assert rows(target, "SELECT max(epoch), count(*) FROM log_epochs") == [(2, 1)]


async def test_an_epoch_has_begun_where_the_verification_is_interrupted(
    archive: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verification may take hours, and the restored product can be started meanwhile."""

    def interrupted(*_: object, **__: object) -> None:
        raise StartError("interrupted")

    monkeypatch.setattr("api.cli.local.backup.verify", interrupted)
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", target)
    assert await asyncio.to_thread(main, ["restore", str(archive)]) == 1
    assert rows(target, "SELECT max(epoch), count(*) FROM log_epochs") == [(2, 1)]


def test_a_restore_that_is_killed_leaves_the_database_empty(source: str, target: str, tmp_path: Path) -> None:
    """The restore is killed before the end of the dump has arrived."""
    with psycopg.connect(source) as connection:
        connection.execute("CREATE TABLE large AS SELECT sha512(i::text::bytea) AS noise FROM generate_series(1, 50000) AS i")
    assert main(["backup", str(tmp_path / "large.backup")]) == 0
    with reading(tmp_path / "large.backup") as opened, opened.dump() as stored:
        dump = stored.read()
    code = "import sys; from workers.adapters.postgres_dump import restore; restore(sys.stdin.buffer, sys.argv[1])"
    in_transaction = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with subprocess.Popen([sys.executable, "-c", code, target], stdin=subprocess.PIPE) as restoring:
        assert restoring.stdin is not None
        restoring.stdin.write(dump[: -len(dump) // 10])
        restoring.stdin.flush()
        wait_until(lambda: rows(target, f"{in_transaction} AND backend_xid IS NOT NULL") == [(1,)])
        restoring.kill()
    wait_until(lambda: rows(target, in_transaction) == [(0,)])
    assert rows(target, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace") == [(0,)]


def test_a_back_up_replaces_no_file_and_leaves_no_half(
    archive: Path, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = archive.read_bytes()
    assert main(["backup", str(archive)]) == 1
    assert capsys.readouterr().err == f"medialedger: {archive} exists already\n"
    assert archive.read_bytes() == before
    files = sorted(os.listdir(tmp_path))
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", make_conninfo(source, options="-c default_transaction_isolation=bad"))
    assert main(["backup", str(tmp_path / "c.backup")]) == 1
    assert main(["backup", str(tmp_path / "no" / "c.backup")]) == 1
    assert sorted(os.listdir(tmp_path)) == files
    with reading(archive) as opened:
        assert opened.dump().name == DUMP

"""The embedded server with real processes: it recovers from kills, stale files and interrupted starts."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from api.cli.run import database
from api.wiring.settings import Settings
from tests.support.postgres_homes import copied
from tests.support.postgres_homes import initialised as initialised
from tests.support.waiting import first_line, python, until
from workers.adapters.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError, server
from workers.adapters.embedded_postgres.roles import is_unchanged
from workers.adapters.system_account import user_name

PARENT = """
import sys, signal
from pathlib import Path
from workers.adapters.embedded_postgres import EmbeddedPostgres
print(EmbeddedPostgres(Path(sys.argv[1])).start(), flush=True)
signal.pause()
"""

ACCOUNT = """
import sys
from workers.adapters.embedded_postgres import account
account.SYSTEM_USER = sys.argv[1]
print(account.server_account())
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    EmbeddedPostgres(tmp_path).stop()


@pytest.fixture
def used(home: Path, initialised: Path) -> Path:
    return copied(initialised, home)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedPostgres, str]]:
    """A running server, for tests that only read."""
    postgres = EmbeddedPostgres(tmp_path_factory.mktemp("shared"))
    yield postgres, postgres.start()
    postgres.stop()


def query(url: str, question: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(question.encode()).fetchone()
    return row[0] if row else None


def insert(url: str, text: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS note (text text)")
        connection.execute("INSERT INTO note VALUES (%s)", [text])


def postmaster(home: Path) -> int:
    return int((home / "postgres" / "postmaster.pid").read_text().splitlines()[0])


def works_in(pid: int, directory: Path) -> bool:
    try:
        return os.path.samefile(f"/proc/{pid}/cwd", directory)
    except OSError:
        return False


def killed_with_its_parent(home: Path) -> str:
    """Return the URL of a server that was killed together with its parent process."""
    parent = python("-c", PARENT, str(home))
    url = first_line(parent)
    insert(url, "before")
    parent.kill()
    parent.communicate()
    os.kill(postmaster(home), signal.SIGKILL)
    until(lambda: not works_in(postmaster(home), home / "postgres"))
    return url


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("server_version_num", "18"),
        ("data_checksums", "on"),
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("full_page_writes", "on"),
        ("listen_addresses", ""),
        ("unix_socket_permissions", "0700"),
        ("server_encoding", "UTF8"),
        ("shared_buffers", "256MB"),
        ("max_wal_size", "4GB"),
        ("work_mem", "16MB"),
        ("max_connections", "250"),
        ("jit", "off"),
        ("TimeZone", "UTC"),
    ],
)
def test_the_settings_of_the_server(shared: tuple[EmbeddedPostgres, str], name: str, value: str) -> None:
    assert str(query(shared[1], f"SELECT current_setting('{name}')")).startswith(value)


def test_text_folds_case_beyond_ascii_and_sorts_by_code_point(shared: tuple[EmbeddedPostgres, str]) -> None:
    assert query(shared[1], "SELECT 'Ärger' ILIKE 'äRGER' AND 'Z' < 'a'")


def test_connections_need_the_password(shared: tuple[EmbeddedPostgres, str]) -> None:
    postgres, url = shared
    password = urlsplit(url).password
    assert password is not None
    assert len(password) >= 40
    for wrong in ("", "wrong"):
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(url, password=wrong, passfile="/dev/null")
    assert password not in postgres.log.read_text()
    assert stat.S_IMODE((postgres.home / "postgres-password").stat().st_mode) == 0o600
    assert stat.S_IMODE(postgres.data.stat().st_mode) == 0o700


def test_another_process_attaches_to_it(shared: tuple[EmbeddedPostgres, str]) -> None:
    assert EmbeddedPostgres(shared[0].home).attach() == shared[1]


def test_data_is_kept_over_a_stop_and_a_start(used: Path) -> None:
    postgres = EmbeddedPostgres(used)
    insert(postgres.start(), "kept")
    postgres.stop()
    assert not postgres.running
    with pytest.raises(EmbeddedPostgresError, match="medialedger up"):
        postgres.attach()
    assert query(postgres.start(), "SELECT text FROM note") == "kept"


def test_a_server_that_outlives_its_killed_parent_is_taken_over(used: Path) -> None:
    parent = python("-c", PARENT, str(used))
    url = first_line(parent)
    insert(url, "before")
    pid = postmaster(used)
    parent.kill()
    parent.communicate()
    successor = EmbeddedPostgres(used)
    assert successor.start() == url
    assert postmaster(used) == pid
    assert query(url, "SELECT text FROM note") == "before"
    successor.stop()
    assert not works_in(pid, used / "postgres")


def test_a_killed_server_recovers_what_was_committed(used: Path) -> None:
    url = killed_with_its_parent(used)
    assert EmbeddedPostgres(used).start() == url
    assert query(url, "SELECT text FROM note") == "before"


def test_a_stale_pid_of_another_program_is_ignored(used: Path) -> None:
    killed_with_its_parent(used)
    pid_file = used / "postgres" / "postmaster.pid"
    sockets = Path(pid_file.read_text().splitlines()[4])  # elsewhere, where the path of the home is too long for a socket
    for path in (pid_file, sockets / ".s.PGSQL.5432.lock"):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join([f"{os.getpid()}\n", *lines[1:]]))
    assert query(EmbeddedPostgres(used).start(), "SELECT text FROM note") == "before"


def test_its_own_server_that_was_killed_is_started_again(used: Path) -> None:
    postgres = EmbeddedPostgres(used)
    url = postgres.start()
    os.kill(postmaster(used), signal.SIGKILL)
    until(lambda: not postgres.running)
    assert postgres.start() == url
    assert query(url, "SELECT 1") == 1


def test_its_own_server_that_was_killed_and_is_not_yet_reaped_is_started_again(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed server on a busy machine releases its directory a moment before its process id."""
    postgres = EmbeddedPostgres(used)
    url = postgres.start()
    os.kill(postmaster(used), signal.SIGKILL)
    until(lambda: not postgres.running)
    poll, still_there = subprocess.Popen.poll, [None, None]
    monkeypatch.setattr(subprocess.Popen, "poll", lambda process: still_there.pop() if still_there else poll(process))
    assert postgres.start() == url
    assert query(url, "SELECT 1") == 1


def test_an_interrupted_first_start_leaves_nothing_to_repair(home: Path) -> None:
    (home / "postgres.new" / "data").mkdir(parents=True)
    (home / "postgres.new" / "data" / "PG_VERSION").write_text("18\n")
    assert query(EmbeddedPostgres(home).start(), "SELECT 1") == 1
    assert not (home / "postgres.new").exists()


def test_a_home_too_deep_for_a_socket_gets_a_private_directory_elsewhere(tmp_path: Path) -> None:
    home = tmp_path / ("deep" * 20) / "home"
    postgres = EmbeddedPostgres(home)
    try:
        assert query(postgres.start(), "SELECT 1") == 1
        directory = Path((postgres.data / "postmaster.pid").read_text().splitlines()[4])
        assert not directory.is_relative_to(home)
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert not (directory.lstat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))
    finally:
        postgres.stop()
    directory.rmdir()


def test_a_start_can_be_abandoned_from_another_thread(home: Path) -> None:
    postgres = EmbeddedPostgres(home)
    refusals: list[str] = []

    def start() -> None:
        try:
            postgres.start()
        except EmbeddedPostgresError as error:
            refusals.append(str(error))

    postgres.abandon()
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert refusals == ["the start of the embedded database was interrupted"]
    postgres.stop()
    assert not postgres.running


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (lambda home: (home / "postgres" / "PG_VERSION").write_text("16\n"), "belongs to PostgreSQL 16"),
        (lambda home: (home / "postgres" / "notes.txt").write_text("mine"), "is neither empty nor"),
    ],
)
def test_a_directory_of_another_program_is_not_changed(home: Path, prepare: object, reason: str) -> None:
    (home / "postgres").mkdir()
    assert callable(prepare)
    prepare(home)
    with pytest.raises(EmbeddedPostgresError, match=reason):
        EmbeddedPostgres(home).start()
    assert len(list((home / "postgres").iterdir())) == 1


def test_processes_that_make_the_system_user_at_once_all_get_it() -> None:
    """A single `useradd` at a time may lock the files of users. Without root no user is created."""
    name = f"medialedger-{os.getpid()}"
    try:
        accounts = {first_line(process) for process in [python("-c", ACCOUNT, name) for _ in range(6)]}
        assert len(accounts) == 1
        assert (name in accounts.pop()) == (os.geteuid() == 0)
    finally:
        subprocess.run(["userdel", name], check=False, capture_output=True)


def test_a_home_that_was_copied_without_its_owners_is_named_with_what_to_do(
    used: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A copy by `cp -r` has a directory that belongs to the user who copied it."""
    copy = tmp_path_factory.mktemp("copied") / "home"
    subprocess.run(["cp", "-r", used, copy], check=True)
    (copy / "postgres.log").unlink()
    wanted = user_name((used / "postgres").stat().st_uid)
    if os.geteuid() == 0:
        for path in ((copy / "postgres"), *(copy / "postgres").rglob("*")):
            os.chown(path, 0, 0)
        with pytest.raises(EmbeddedPostgresError) as refusal:
            EmbeddedPostgres(copy).start()
        assert str(refusal.value) == f"{copy}/postgres belongs to root, not to {wanted}: chown -R {wanted}: {copy}/postgres"
        subprocess.run(["chown", "-R", f"{wanted}:", copy / "postgres"], check=True)
    (copy / "postgres").chmod(0o755)
    with pytest.raises(EmbeddedPostgresError, match=f"open to other users .mode 0755.: chmod -R go= {copy}/postgres"):
        EmbeddedPostgres(copy).start()
    assert not (copy / "postgres.log").exists(), "the server was not even started"
    (copy / "postgres").chmod(0o700)
    try:
        assert query(EmbeddedPostgres(copy).start(), "SELECT 1") == 1
    finally:
        EmbeddedPostgres(copy).stop()


def test_the_log_is_kept_small_while_the_server_runs(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LOG_BYTES", 1000)
    postgres = EmbeddedPostgres(used)
    url = postgres.start()

    def logged(text: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection, pytest.raises(psycopg.Error):
            connection.execute(f'SELECT "{text}"'.encode())

    logged("a" * 60 + "first")
    while postgres.log.stat().st_size <= 1000:
        logged("more")
    postgres.trim_log()
    logged("later")
    until(lambda: "later" in postgres.log.read_text())
    assert "first" not in postgres.log.read_text(), "it was moved"
    old_log = postgres.log.with_suffix(".log.1")
    assert "first" in old_log.read_text()
    assert stat.S_IMODE(old_log.stat().st_mode) == 0o600
    before = old_log.read_text()
    postgres.trim_log()
    assert old_log.read_text() == before, "a small one stays"


def test_the_login_cannot_create_hidden_objects(shared: tuple[EmbeddedPostgres, str]) -> None:
    """Large objects and temporary tables fill the disk."""
    for statement in (
        "SELECT lo_from_bytea(0, 'x')",
        "SELECT lo_create(0)",
        "SELECT lo_creat(-1)",
        "CREATE TEMPORARY TABLE a (b int)",
    ):
        with psycopg.connect(shared[0].logins().product) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.encode())


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER ROLE medialedger PASSWORD NULL",
        "ALTER ROLE medialedger PASSWORD 'other'",
        "ALTER ROLE medialedger SET default_transaction_read_only = on",
        "ALTER ROLE medialedger IN DATABASE medialedger SET statement_timeout = 1",
    ],
)
def test_a_login_that_changed_itself_is_reset(used: Path, statement: str) -> None:
    postgres = EmbeddedPostgres(used)
    postgres.start()
    states = [postgres.usable]
    with psycopg.connect(postgres.logins().product, autocommit=True) as connection:
        connection.execute(statement.encode())
    states.append(postgres.usable)
    postgres.start()
    assert [*states, postgres.usable] == [True, False, True]


async def test_a_running_product_gets_its_login_back(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "WATCH_SECONDS", 0.01)
    monkeypatch.setattr(database, "LOGIN_SECONDS", 0.0)
    async with database.start_database(Settings.from_env({"MEDIALEDGER_HOME": str(used)})) as opened:
        with psycopg.connect(opened.url, autocommit=True) as connection:
            connection.execute("ALTER ROLE medialedger PASSWORD NULL")
        await asyncio.to_thread(until, lambda: is_unchanged(opened.url))

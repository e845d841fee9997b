"""The actions of root for another account: it writes nothing where the account may write, and grants access only to the account."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.cli.run.home import create_home
from tests.support.postgres_homes import copied
from tests.support.postgres_homes import initialised as initialised
from workers.adapters.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError
from workers.adapters.embedded_postgres.account import SYSTEM_USER, make_private_directory
from workers.adapters.system_account import AccountError, grant_traversal, system_account

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has other accounts")


@pytest.fixture
def used(tmp_path: Path, initialised: Path) -> Iterator[Path]:
    home = tmp_path / "home"
    home.mkdir()
    yield copied(initialised, home)
    for name in ("PG_VERSION", "postmaster.pid"):
        if not (home / "postgres" / name).is_file() or (home / "postgres" / name).is_symlink():
            (home / "postgres" / name).unlink(missing_ok=True)
    EmbeddedPostgres(home).stop()


@pytest.fixture
def account() -> pwd.struct_passwd:
    entry = system_account(SYSTEM_USER)
    assert entry is not None, "as root"
    return entry


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file that belongs to root."""
    file = tmp_path / "victim"
    file.write_text("of root")
    file.chmod(0o600)
    return file


def as_user(user: pwd.struct_passwd, *command: str | Path) -> subprocess.CompletedProcess[str]:
    ids: dict[str, Any] = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    return subprocess.run([*map(str, command)], **ids, capture_output=True, text=True, check=False, cwd="/")


@needs_root
@pytest.mark.parametrize("name", ["medialedger.conf.new", "medialedger.conf", "postgresql.conf.new", "password"])
def test_a_link_that_the_account_has_planted_leads_root_nowhere(
    used: Path, victim: Path, account: pwd.struct_passwd, name: str
) -> None:
    postgres = EmbeddedPostgres(used)
    postgres.start()
    postgres.stop()
    planted = as_user(account, "ln", "-s", victim, used / "postgres" / name)
    assert planted.returncode == 0, planted.stderr
    postgres.start()
    status = victim.stat()
    assert (victim.read_text(), status.st_uid, stat.S_IMODE(status.st_mode)) == ("of root", 0, 0o600)


@needs_root
@pytest.mark.parametrize("name", ["PG_VERSION", "postmaster.pid"])
@pytest.mark.parametrize("planted", ["link", "pipe"])
def test_root_follows_no_link_and_waits_at_no_pipe_in_the_folder_of_the_account(
    used: Path, victim: Path, account: pwd.struct_passwd, name: str, planted: str
) -> None:
    postgres = EmbeddedPostgres(used)
    grant_traversal(account, postgres.data)
    (postgres.data / name).unlink(missing_ok=True)
    plant = ("ln", "-s", victim) if planted == "link" else ("mkfifo",)
    assert as_user(account, *plant, postgres.data / name).returncode == 0
    with pytest.raises(EmbeddedPostgresError, match=name):
        postgres.start()


@needs_root
def test_root_removes_no_lock_of_another_server_because_a_pid_file_names_it(used: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "other"
    elsewhere.mkdir()
    lock = elsewhere / ".s.PGSQL.5432.lock"
    lock.touch()
    pid_file = used / "postgres" / "postmaster.pid"
    pid_file.write_text(f"{os.getpid()}\n{used}/postgres\n1\n5432\n{elsewhere}\n")
    EmbeddedPostgres(used).start()
    assert lock.exists()


@needs_root
def test_a_socket_directory_that_is_a_link_is_refused(tmp_path: Path, account: pwd.struct_passwd) -> None:
    target = tmp_path / "target"
    target.mkdir()
    target.chmod(0o755)
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(EmbeddedPostgresError, match="belongs to another user or is not a directory"):
        make_private_directory(tmp_path / "link", account)
    assert (target.stat().st_uid, stat.S_IMODE(target.stat().st_mode)) == (0, 0o755)


@needs_root
def test_the_directories_above_the_database_let_one_account_through_and_nobody_else(
    tmp_path: Path, initialised: Path, account: pwd.struct_passwd
) -> None:
    above = tmp_path / "closed"
    above.mkdir(mode=0o700)
    (above / "readable.txt").write_text("of root")
    (above / "readable.txt").chmod(0o644)
    home = above / "home"
    home.mkdir(mode=0o700)
    postgres = EmbeddedPostgres(copied(initialised, home))
    try:
        postgres.start()
        assert not any(directory.stat().st_mode & stat.S_IRWXO for directory in (above, home))
        assert as_user(account, "cat", above / "readable.txt").stdout == "of root"
        assert as_user(account, "ls", above).returncode != 0
        assert as_user(pwd.getpwnam("nobody"), "cat", above / "readable.txt").returncode != 0
        above.chmod(0o700)  # as pytest does with its folder: it withdraws what the list grants
        grant_traversal(account, home)
        assert as_user(account, "cat", above / "readable.txt").returncode == 0
    finally:
        postgres.stop()


@needs_root
def test_where_there_are_no_access_control_lists_the_refusal_says_what_to_do(account: pwd.struct_passwd) -> None:
    with pytest.raises(AccountError, match=r"cannot traverse /proc/\d+/map_files, .*; move MEDIALEDGER_HOME"):
        grant_traversal(account, Path("/proc/self/map_files/any"))


def test_a_home_that_is_open_to_others_is_closed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    create_home(home)
    create_home(home)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert caplog.messages == [f"{home} was open to other users (mode 0755); it is closed now"]


@needs_root
def test_closing_a_home_keeps_the_entry_of_the_account(tmp_path: Path, account: pwd.struct_passwd) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "file").write_text("x")
    grant_traversal(account, home / "file")
    home.chmod(0o755)
    create_home(home)
    assert not home.stat().st_mode & stat.S_IRWXO
    assert as_user(account, "stat", home / "file").returncode == 0

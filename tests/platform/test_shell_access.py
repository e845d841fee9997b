"""The key of the home's own shells, and the accounts that could obtain it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import pytest

from api.cli.run.home import lock_home
from api.kernel.shell_access import ShellKeys, announce, running_product, withdraw
from api.wiring.startup import StartError
from tests.support.programs import not_run
from tests.support.waiting import ROOT
from workers.adapters.step_account import step_account

URL = "http://127.0.0.1:1"
ELSEWHERE = """
import os, pathlib, sys
from api.kernel.shell_access import announce, running_product
home = pathlib.Path(sys.argv[1])
found = running_product(home)
announce(home, url="http://127.0.0.1:2", database=None)
print(found is not None, os.getpid())
"""

CONCEALED = """
import pathlib, subprocess, sys
from api.cli.run.home import lock_home
from api.kernel.shell_access import announce
from workers.kernel.confinement import conceal
home = pathlib.Path(sys.argv[1])
conceal()
with lock_home(home):
    announce(home, url="http://127.0.0.1:1", database=None)
    print(subprocess.run([sys.executable, "-c", sys.argv[2], str(home)], capture_output=True, text=True, check=True).stdout)
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home that the `up` of this process has locked."""
    with lock_home(tmp_path):
        announce(tmp_path, url=URL, database=None)
        yield tmp_path


def edit(home: Path, **members: Any) -> None:
    file = home / "running.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | members))


def test_the_key_names_the_user(home: Path) -> None:
    running = running_product(home)
    assert running is not None
    assert running.secret not in repr(running)
    assert stat.S_IMODE((home / "running.json").stat().st_mode) == 0o600
    assert {each.name for each in home.iterdir()} == {"lock", "running.json"}
    keys = ShellKeys(home)
    assert keys.user(running.key("shell:maria")) == "shell:maria"
    wrong = "x" * len(running.secret)
    for key in ("", "shell:", "shell:maria", f"shell:maria:{wrong}", f"admin:{running.secret}", f"shell::{running.secret}"):
        assert keys.user(key) is None


def test_another_start_has_another_secret(home: Path) -> None:
    before = running_product(home)
    announce(home, url=URL, database=None)
    assert before is not None
    assert ShellKeys(home).user(before.key("shell:maria")) is None


def test_what_ended_leaves_no_key(tmp_path: Path) -> None:
    with lock_home(tmp_path):
        announce(tmp_path, url=URL, database=None)
        running = running_product(tmp_path)
        contents, lock = ((tmp_path / name).read_bytes() for name in ("running.json", "lock"))
    assert running is not None
    assert not (tmp_path / "running.json").exists()
    (tmp_path / "running.json").touch(mode=0o600)
    (tmp_path / "running.json").write_bytes(contents)  # as after a kill
    assert running_product(tmp_path) is None
    number, start = lock.split(b"\n")[:2]
    assert number == str(os.getpid()).encode(), "it is for people"
    (tmp_path / "lock").write_bytes(lock)
    assert running_product(tmp_path) is not None
    (tmp_path / "lock").write_bytes(lock.replace(start, start + b"1"))  # when another process has the id by now
    assert running_product(tmp_path) is None
    assert ShellKeys(tmp_path).user(running.key("shell:maria")) is None
    (tmp_path / ".running.of-a-killed-start").touch()
    with lock_home(tmp_path):
        assert running_product(tmp_path) is None, "in a container the next start has the same process id"
        assert list(tmp_path.iterdir()) == [tmp_path / "lock"]


def test_another_process_is_told_and_announces_nothing(home: Path) -> None:
    done = subprocess.run([sys.executable, "-c", ELSEWHERE, str(home)], capture_output=True, text=True, check=True, timeout=60)
    address, other = done.stdout.split()
    assert address == "True"
    running = running_product(home)
    assert running is not None
    assert running.url == URL
    edit(home, pid=int(other))
    assert running_product(home) is None
    edit(home, pid=os.getppid())
    assert running_product(home) is None


def test_a_product_of_an_ordinary_user_is_found_though_nobody_may_look_into_it(tmp_path: Path) -> None:
    """The test uses the account of steps, which can read the product, because root may examine any process."""
    account, _ = step_account(tmp_path / "media", jobs=".jobs", home=tmp_path)
    own = Path(mkdtemp(prefix="medialedger-ordinary-", dir="/tmp"))
    user: dict[str, Any] = {}
    if account is not None:
        os.chown(own, account.pw_uid, account.pw_gid)
        user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    command = [sys.executable, "-c", CONCEALED, str(own), ELSEWHERE]
    try:
        ran = subprocess.run(
            command, env={"PYTHONPATH": str(ROOT)}, cwd="/", capture_output=True, text=True, check=False, timeout=120, **user
        )
    finally:
        rmtree(own)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split()[0] == "True"


def test_the_same_address_in_another_network_is_another_machine(home: Path) -> None:
    command = ["unshare", "--user", "--map-current-user", "--net", sys.executable, "-c", ELSEWHERE, str(home)]
    if subprocess.run([*command[:4], "true"], capture_output=True, check=False, timeout=60).returncode != 0:
        not_run("a network namespace", "sysctl user.max_user_namespaces")
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split()[0] == "False"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_may_have_read_holds_no_key(home: Path, mode: int) -> None:
    running = running_product(home)
    assert running is not None
    (home / "running.json").chmod(mode)
    assert running_product(home) is None
    assert ShellKeys(home).user(running.key("shell:maria")) is None


def test_no_link_is_followed(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    running = running_product(home)
    assert running is not None
    other = tmp_path_factory.mktemp("other") / "file"
    (home / "running.json").rename(other)
    (home / "running.json").symlink_to(other)
    assert running_product(home) is None
    (home / "lock").rename(home / "held")
    (home / "lock").symlink_to(other)
    before = other.read_bytes()
    with pytest.raises(StartError, match="it is a link"), lock_home(home):
        pass
    assert other.read_bytes() == before
    (home / "lock").unlink()
    (home / "held").rename(home / "lock")
    announce(home, url=URL, database=None)
    assert not (home / "running.json").is_symlink()
    assert other.read_bytes() == before
    withdraw(home)
    os.mkfifo(home / "running.json", 0o600)
    assert running_product(home) is None, "and nobody waits for a writer"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"pid": 1}',
        "\x00",
        "[" * 9_000,
        '{"pid": "../proc/1", "url": "", "database": "", "secret": "", "network": ""}',
    ]
    + [
        f'{{"pid": {os.getpid()}, "url": "http://127.0.0.1:1", "database": "", "secret": {each}, "network": ""}}'
        for each in ("1", '"\u00e9"')
    ],
)
def test_a_damaged_file_is_none(home: Path, text: str) -> None:
    (home / "running.json").write_text(text)
    assert running_product(home) is None
    assert ShellKeys(home).user(f"shell:maria:{'x' * 43}") is None

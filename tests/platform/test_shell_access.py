"""The key of the home's own shells."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from api.kernel.shell_access import ShellKeys, announce, running_product

URL = "http://127.0.0.1:1"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """As `up` of this process has locked it."""
    (tmp_path / "lock").write_text(f"{os.getpid()}\n")
    announce(tmp_path, url=URL, database=None)
    return tmp_path


def test_the_key_names_the_user(home: Path) -> None:
    running = running_product(home)
    assert running is not None
    assert running.secret not in repr(running)
    assert stat.S_IMODE((home / "running.json").stat().st_mode) == 0o600
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


def test_only_the_process_that_has_locked_the_home_counts(home: Path, tmp_path: Path) -> None:
    running = running_product(home)
    assert running is not None
    (home / "lock").write_text("1\n")
    assert running_product(home) is None
    assert ShellKeys(home).user(running.key("shell:maria")) is None
    (home / "running.json").unlink()
    announce(home, url=URL, database=None)
    assert not (home / "running.json").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pid": 1}', "\x00"])
def test_a_damaged_file_is_none(home: Path, text: str) -> None:
    (home / "running.json").write_text(text)
    assert running_product(home) is None

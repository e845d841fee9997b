from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from domain.kernel.encryption import fingerprint
from workers.adapters.keyfiles import (
    KeyFileError,
    first_master_key,
    master_key,
    read_secret_file,
    readable_master_keys,
    replace_master_key,
    write_secret_file,
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_master_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "master.key"
    key = first_master_key(path)
    assert len(key) == 32
    assert mode(path) == 0o600
    assert master_key(path) == first_master_key(path) == key == path.read_bytes()
    assert list(tmp_path.iterdir()) == [path]


def test_processes_that_start_together_agree_on_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        keys = set(threads.map(first_master_key, [tmp_path / "master.key"] * 32))
    assert len(keys) == 1


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_key_of_another_length_is_refused_and_left_alone(tmp_path: Path, length: int) -> None:
    path = tmp_path / "master.key"
    path.write_bytes(b"x" * length)
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match=f"has {length} bytes instead of 32"):
        master_key(path)
    assert path.read_bytes() == b"x" * length


@pytest.mark.parametrize("open_to", [0o640, 0o604, 0o622])
def test_a_key_that_others_can_open_is_refused(tmp_path: Path, open_to: int) -> None:
    path = tmp_path / "master.key"
    first_master_key(path)
    path.chmod(open_to)
    with pytest.raises(KeyFileError, match=f"chmod 600 {path}"):
        master_key(path)


def test_a_place_that_cannot_hold_a_key_is_one_line(tmp_path: Path) -> None:
    for path in (tmp_path / "missing" / "master.key", tmp_path):
        with pytest.raises(KeyFileError) as refusal:
            first_master_key(path)
        assert str(path) in str(refusal.value)
        assert "\n" not in str(refusal.value)


def test_a_reader_does_not_create_a_missing_key(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="there is no master key at"):
        master_key(tmp_path / "master.key")
    assert list(tmp_path.iterdir()) == []


def test_the_files_of_a_rotation_are_read_as_far_as_they_can_be(tmp_path: Path) -> None:
    path = tmp_path / "master.key"
    assert readable_master_keys(path) == []
    old = first_master_key(path)
    replace_master_key(path, bytes(32))
    assert readable_master_keys(path) == [bytes(32), old]
    (tmp_path / "master.key.previous").chmod(0o644)
    assert readable_master_keys(path) == [bytes(32)]


def test_a_pipe_in_its_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "master.key", 0o600)
    with pytest.raises(KeyFileError, match="is not a file"):
        master_key(tmp_path / "master.key")


def test_a_fingerprint_tells_keys_apart_without_showing_them() -> None:
    assert fingerprint(b"\x00" * 32) == "dc7c582d2d6c575b"
    assert fingerprint(b"\x00" * 31 + b"\x01") != fingerprint(b"\x00" * 32)


def test_a_secret_file_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "admin-api-key"
    path.write_text("an older and longer text that everybody may read")
    path.chmod(0o644)
    write_secret_file(path, "mlk_new")
    assert path.read_text() == "mlk_new\n"
    assert mode(path) == 0o600
    assert read_secret_file(path) == "mlk_new"
    assert list(tmp_path.iterdir()) == [path]

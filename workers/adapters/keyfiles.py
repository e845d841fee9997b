"""Secrets that must outlive the process and are never stored in the database in plain text: small files that only their owner may
read.

They are created completely or not at all: written under another name, flushed to disk, then put in place in one step. So a crash
never leaves half a key behind, and two processes that start together agree on one key.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

KEY_BYTES: Final = 32
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class KeyFileError(Exception):
    """Raised when a file of a secret is wrong. The message is one line with the file and the remedy, never its content."""


def master_key(path: Path) -> bytes:
    """Return the key that seals secrets and content keys. Raises `KeyFileError`."""
    try:
        key = _read(path)
    except FileNotFoundError:
        raise KeyFileError(f"there is no master key at {path} (MEDIALEDGER_MASTER_KEY_FILE)") from None
    except OSError as error:
        raise KeyFileError(f"the master key {path} cannot be read: {error.strerror or error}") from error
    if len(key) != KEY_BYTES:
        raise KeyFileError(f"the master key {path} has {len(key)} bytes instead of {KEY_BYTES}; restore the right file")
    return key


def has_master_key(path: Path) -> bool:
    """Return True if there is a file, whatever it contains."""
    return os.path.lexists(path)


def remove_master_key(path: Path) -> None:
    """Remove a new key, with which nothing is encrypted yet."""
    path.unlink(missing_ok=True)
    sync_directory(path.parent)


def first_master_key(path: Path) -> bytes:
    """Return the existing key, or create one. This is for a place where nothing is sealed yet. Raises `KeyFileError`."""
    try:
        if not path.exists():
            _put(path, secrets.token_bytes(KEY_BYTES), place=_link_new)
    except OSError as error:
        raise KeyFileError(f"the master key {path} cannot be created: {error.strerror or error}") from error
    return master_key(path)


def previous_master_key(path: Path) -> bytes | None:
    """Return the previous master key, which exists while boxes may still be sealed with it (`medialedger keys rotate`); otherwise
    None."""
    previous = _previous(path)
    return master_key(previous) if previous.exists() else None


def readable_master_keys(path: Path) -> Sequence[bytes]:
    """Return the keys of both files, without those that cannot be read."""
    keys = []
    for each in (path, _previous(path)):
        with suppress(KeyFileError):
            keys.append(master_key(each))
    return keys


def replace_master_key(path: Path, key: bytes) -> None:
    """Store `key` at `path`, after the existing key was stored as the previous one: at no moment is the old key only in memory."""
    old = master_key(path) if has_master_key(path) else None
    if old == key:
        return
    if old is not None and _previous(path).exists() and previous_master_key(path) != old:
        raise KeyFileError(f"{_previous(path)} already exists; an earlier replacement of the master key has not ended")
    try:
        if old is not None:
            _put(_previous(path), old, place=os.replace)
        _put(path, key, place=os.replace)
    except OSError as error:
        raise KeyFileError(f"the master key {path} cannot be replaced: {error.strerror or error}") from error


def forget_previous_master_key(path: Path) -> None:
    """Remove the previous key, when nothing is sealed with it any more."""
    _previous(path).unlink(missing_ok=True)
    sync_directory(path.parent)


def _previous(path: Path) -> Path:
    return path.with_name(f"{path.name}.previous")


def write_secret_file(path: Path, text: str) -> None:
    """Write `text` and a line end to `path`, replacing an existing file."""
    try:
        _put(path, text.encode() + b"\n", place=os.replace)
    except OSError as error:
        raise KeyFileError(f"{path} cannot be written: {error.strerror or error}") from error


def first_secret_file(path: Path, text: str) -> str:
    """Write `text` to `path` unless the file exists. Return the content of the file, whichever process wrote it."""
    try:
        _put(path, text.encode() + b"\n", place=_link_new)
    except OSError as error:
        raise KeyFileError(f"{path} cannot be written: {error.strerror or error}") from error
    return read_secret_file(path)


def read_secret_file(path: Path) -> str:
    """Return the text that `write_secret_file` wrote."""
    try:
        return _read(path).decode().removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise KeyFileError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not text'}") from error


def _read(path: Path) -> bytes:
    """Read a file. The mode is read from the open file, so it cannot change in between. This does not wait for a pipe."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise KeyFileError(f"{path} is not a file")
        if mode & _OTHERS:
            raise KeyFileError(f"{path} is open to other users (mode {stat.S_IMODE(mode):04o}); run: chmod 600 {path}")
        return file.read()


def _put(path: Path, content: bytes, *, place: Callable[[Path, Path], object]) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        place(draft, path)
        sync_directory(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def _link_new(draft: Path, path: Path) -> None:
    """Link the draft to its name. A hard link appears complete and refuses to replace a file, so the second process keeps the first
    one's key."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return


def sync_directory(directory: Path) -> None:
    """Flush a directory, because a new name is on disk only when its directory is."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""The data directory: one process at a time may run on it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from api.wiring.startup import StartError


def prepare(home: Path) -> None:
    """Makes the directory, closed to others. Whether it can be written is found out here and not half-way through a start."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(home, os.W_OK | os.X_OK):
            raise PermissionError(None, "permission denied")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartError(f"cannot write to the data directory {home} (MEDIALEDGER_HOME): {reason}") from error


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """The kernel drops the lock however the process ends; the file's content only tells people who holds it."""
    with open(os.open(home / "lock", os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.read().strip() or "unknown"
            raise StartError(f"medialedger is already running on this home (pid {holder}): {home}") from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield

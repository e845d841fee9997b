"""The home: the directory with the data of an installation, and its lock file. One `up` at a time runs on a home."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from api.wiring.startup import StartError


def create_home(home: Path) -> None:
    """Create the directory with mode 0700. Raises `StartError` if it cannot be written to, before anything else has started."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(home, os.W_OK | os.X_OK):
            raise PermissionError(None, "permission denied")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartError(f"cannot write to the data directory {home} (MEDIALEDGER_HOME): {reason}") from error


@contextmanager
def lock_home(home: Path) -> Iterator[None]:
    """Hold the lock file. The kernel releases the lock whenever the process ends; the process id in the file is for people."""
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

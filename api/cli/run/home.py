"""The home: the directory with the data of an installation, and its lock file. Only one `up` at a time runs on a home."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from api.kernel.shell_access import holder_text, withdraw
from api.wiring.startup import StartError

PUBLISHED = "published"
"""The folder of the home that the demo publishes into, unless the operator has set another."""
_ACL = "system.posix_acl_access"
logger = logging.getLogger(__name__)


def create_home(home: Path) -> None:
    """Create the directory with mode 0700, and close one that is open to other users. Raise `StartError` if it is not writable,
    before anything else has started."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _close(home)
        if not os.access(home, os.W_OK | os.X_OK):
            raise PermissionError(None, "permission denied")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartError(f"cannot write to the data directory {home} (MEDIALEDGER_HOME): {reason}") from error


def _close(home: Path) -> None:
    """Remove the access of other users. Only root and the owner of a directory may change its mode; later steps refuse another
    user's home or leave its mode alone. With an access control list the group's execute bit is the mask of the list, which only
    admits single accounts."""
    status = home.stat()
    listed = _ACL in os.listxattr(home)
    closed = stat.S_IMODE(status.st_mode) & (0o710 if listed else 0o700)
    if stat.S_IMODE(status.st_mode) & 0o777 != closed and status.st_uid == os.geteuid():
        home.chmod(closed)
        logger.warning("%s was open to other users (mode %04o); it is closed now", home, stat.S_IMODE(status.st_mode))


@contextmanager
def lock_home(home: Path) -> Iterator[None]:
    """Hold the lock file. The kernel releases the lock whenever the process ends; the process id in the file is for people. The
    announcement of an earlier product is removed."""
    with _lock_file(home) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.readline().strip() or "unknown"
            raise StartError(f"medialedger is already running on this home (pid {holder}): {home}") from None
        file.truncate(0)
        file.write(holder_text(os.getpid()))
        file.flush()
        withdraw(home)
        try:
            yield
        finally:
            withdraw(home)
            file.truncate(0)


def _lock_file(home: Path) -> TextIO:
    """Open the lock file. Raise `StartError` if that fails. A link is not followed: its target would be overwritten."""
    try:
        return open(os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+")
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else (error.strerror or str(error)).lower()
        raise StartError(f"cannot lock the data directory with {home / 'lock'}: {reason}") from error

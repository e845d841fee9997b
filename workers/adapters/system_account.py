"""System accounts for programs that root starts but does not run itself: PostgreSQL, and the steps of jobs.

An account has no password, no home and no shell. It must traverse the directories above the files it uses. Directories that forbid
it get an entry in their access control list for this one account, and each change is logged; no other account gets any permission.
"""

from __future__ import annotations

import fcntl
import logging
import os
import pwd
import shutil
import stat
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

from workers.adapters.acl import grant_execute

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_log = logging.getLogger(__name__)


class AccountError(Exception):
    """Raised when an account cannot be used. The message is one line: what is missing for it, and the remedy."""


def system_account(name: str) -> pwd.struct_passwd | None:
    """Return the account for root, created if it is missing. None for other users, whose processes run under their own account."""
    if os.geteuid() != 0:
        return None
    useradd = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", name]
    directory = os.open("/etc", os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)  # several `useradd` at once create several users of one name
        if name not in {user.pw_name for user in pwd.getpwall()} and shutil.which("useradd"):
            subprocess.run(useradd, capture_output=True, check=False)  # noqa: S603 - no shell
        return pwd.getpwnam(name)
    except KeyError:
        raise AccountError(f"as root, the user {name} is needed, and useradd did not create it") from None
    finally:
        os.close(directory)


def user_name(uid: int) -> str:
    """Return the name of a user, or the number if the system has no name for it."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def grant_traversal(account: pwd.struct_passwd, *paths: Path) -> None:
    """Let the account reach the files at these paths. Raises `AccountError` if that is not possible.

    Each directory is opened below its parent without following links, so it cannot be exchanged meanwhile.
    """
    for path in paths:
        parent = os.open("/", _DIRECTORY)
        try:
            for part in path.resolve().parent.parts[1:]:
                child = os.open(part, _DIRECTORY, dir_fd=parent)
                os.close(parent)
                parent = child
                _let_through(parent, account)
        except OSError as error:
            raise AccountError(f"{path} cannot be reached: {error.strerror or error}") from error
        finally:
            os.close(parent)


def _let_through(directory: int, account: pwd.struct_passwd) -> None:
    status = os.fstat(directory)
    if status.st_mode & stat.S_IXOTH or (status.st_uid == account.pw_uid and status.st_mode & stat.S_IXUSR):
        return
    name = os.readlink(f"/proc/self/fd/{directory}")
    try:
        if grant_execute(directory, account):
            _log.warning("the user %s may now traverse %s (access control list)", account.pw_name, name)
    except OSError as error:
        raise AccountError(
            f"the user {account.pw_name} cannot traverse {name}, which has no access control list ({error.strerror or error}); "
            "move MEDIALEDGER_HOME, or the installation, to a place that every user may traverse, or do not start it as root"
        ) from error


def open_private_directory(directory: Path, account: pwd.struct_passwd | None) -> int:
    """Create the directory, with mode 0700 and owned by the account, and return its descriptor. Raises `PermissionError` for a
    directory that another user has created: in a world-writable folder, another user may have taken the name first."""
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    descriptor = os.open(directory, _DIRECTORY)
    try:
        if os.fstat(descriptor).st_uid not in {os.geteuid(), *({account.pw_uid} if account else ())}:
            raise PermissionError(None, "it belongs to another user")
        os.fchmod(descriptor, 0o700)
        if account is not None:
            os.fchown(descriptor, account.pw_uid, account.pw_gid)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_text_file(path: Path, *, most: int = 65_536) -> str | None:
    """Return the text of a regular file in a directory that another account may write to; None if there is none. A link is not
    followed, and a pipe does not block the reader."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(None, f"{path} is not a file")
        return file.read(most).decode(errors="replace")

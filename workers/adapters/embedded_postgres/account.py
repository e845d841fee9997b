"""The system user of the embedded server, and the file permissions that it needs.

PostgreSQL does not run as root. A server that root starts runs as the system user `medialedger`, which is created when it is
missing. That user must be able to traverse the directories above the data and above the wheel: those that forbid it get `o+x` and
nothing else (their files can neither be listed nor read), and each is logged. Where a strict umask has removed the read permissions
of the wheel's files, everybody gets them back.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import pwd
import shutil
import stat
from pathlib import Path
from typing import Any

from workers.adapters.embedded_postgres.errors import EmbeddedPostgresError
from workers.adapters.embedded_postgres.programs import run

SYSTEM_USER = "medialedger"
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}  # no PG… variable of the calling process

logger = logging.getLogger(__name__)


def server_account() -> pwd.struct_passwd | None:
    """The account of the server: None for the current user; for root a system user without a password, a home or a shell."""
    if os.geteuid() != 0:
        return None
    useradd = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", SYSTEM_USER]
    directory = os.open("/etc", os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)  # several `useradd` at once create several users of one name
        if SYSTEM_USER not in {user.pw_name for user in pwd.getpwall()} and shutil.which("useradd"):
            run(useradd)
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        raise EmbeddedPostgresError(f"as root, the user {SYSTEM_USER} is needed, and useradd did not create it") from None
    finally:
        os.close(directory)


def process_options(account: pwd.struct_passwd | None) -> dict[str, Any]:
    """Options of `subprocess` for a program of the server: its user, environment, directory and umask."""
    options: dict[str, Any] = {"cwd": "/", "env": _ENVIRONMENT, "umask": 0o077}
    if account is None:
        return options
    return options | {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def change_owner(account: pwd.struct_passwd | None, *paths: Path) -> None:
    """Make the files the account's. Without an account they belong to the current user already."""
    if account is not None:
        for path in paths:
            os.chown(path, account.pw_uid, account.pw_gid)


def grant_traversal(account: pwd.struct_passwd, data: Path, *, wheel: Path) -> None:
    """Let the account reach the data directory and read the wheel."""
    for directory in (*reversed(data.parents), *reversed(wheel.parents)):
        status = directory.stat()
        if status.st_uid != account.pw_uid and not status.st_mode & stat.S_IXOTH:
            directory.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXOTH)
            logger.warning("%s is now o+x: the user %s, which runs the database, traverses it", directory, SYSTEM_USER)
    for tree in (wheel, wheel.parent.with_name(wheel.parent.name + ".libs")):
        if tree.is_dir() and tree.stat().st_mode & 0o005 != 0o005:
            _grant_read(tree)


def _grant_read(tree: Path) -> None:
    for path in (tree, *tree.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode | (0o005 if mode & stat.S_IXUSR else 0o004))


def make_private_directory(directory: Path, account: pwd.struct_passwd | None) -> None:
    """Create the directory with mode 0700. Raises when another user has created it: in a directory that everybody may write to,
    another user may have chosen the name first."""
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    status = directory.lstat()
    owners = {os.geteuid()} | ({account.pw_uid} if account else set())
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in owners:
        raise EmbeddedPostgresError(f"{directory} belongs to another user or is no directory; remove it or set TMPDIR")
    directory.chmod(0o700)
    change_owner(account, directory)

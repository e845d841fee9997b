"""The system user of the embedded server, and its permissions.

PostgreSQL does not run as root. A server that root starts runs as the system user `medialedger`. If a strict umask has removed the
read permissions of the wheel's files, they are restored for all users.
"""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path
from typing import Any

from workers.adapters.embedded_postgres.errors import EmbeddedPostgresError
from workers.adapters.system_account import AccountError, grant_traversal, open_private_directory, system_account

SYSTEM_USER = "medialedger"
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}  # no PG… variable of the calling process


def server_account() -> pwd.struct_passwd | None:
    """Return the account of the server: None for the current user; for root a system user without a password, a home or a shell."""
    try:
        return system_account(SYSTEM_USER)
    except AccountError as error:
        raise EmbeddedPostgresError(str(error)) from error


def process_options(account: pwd.struct_passwd | None) -> dict[str, Any]:
    """Return the options of `subprocess` for a program of the server: its user, environment, directory and umask."""
    options: dict[str, Any] = {"cwd": "/", "env": _ENVIRONMENT, "umask": 0o077}
    if account is None:
        return options
    return options | {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def grant_reach(account: pwd.struct_passwd, data: Path, *, wheel: Path) -> None:
    """Let the account reach the data directory and read the wheel."""
    try:
        grant_traversal(account, data, wheel)
    except AccountError as error:
        raise EmbeddedPostgresError(str(error)) from error
    for tree in (wheel, wheel.parent.with_name(wheel.parent.name + ".libs")):
        if tree.is_dir() and tree.stat().st_mode & 0o005 != 0o005:
            _grant_read(tree)


def _grant_read(tree: Path) -> None:
    for path in (tree, *tree.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode | (0o005 if mode & stat.S_IXUSR else 0o004))


def make_private_directory(directory: Path, account: pwd.struct_passwd | None) -> None:
    """Create the directory with mode 0700. Raises `EmbeddedPostgresError` if another user has created it."""
    try:
        os.close(open_private_directory(directory, account))
    except OSError as error:
        raise EmbeddedPostgresError(
            f"{directory} belongs to another user or is not a directory; remove it or set TMPDIR"
        ) from error

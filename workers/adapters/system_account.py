"""System accounts for programs that root starts but does not run itself: PostgreSQL, and the steps of jobs.

An account has no password, no home and no shell. It must traverse the directories above the files it uses. Directories that forbid
it get an entry in their access control list for this one account, and each change is logged; no other account gets any permission.
"""

from __future__ import annotations

import ctypes
import fcntl
import logging
import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from ctypes import CDLL, c_char_p, c_int, c_void_p
from pathlib import Path
from typing import Final

# Access control lists of directories (POSIX.1e), through the C library `libacl`: they let one more account traverse a directory.
# A mode has one entry for all others; a list has entries for single accounts. `libacl` comes with the coreutils of nearly every
# distribution, the program `setfacl` does not.

_LIBRARY: Final = "libacl.so.1"
_EXECUTE: Final = "x"


def grant_execute(directory: int, account: pwd.struct_passwd) -> bool:
    """Let the account traverse the open directory. Return False if it already may. Raises `OSError` if there are no such lists."""
    library = _library()
    entries = _entries(library, directory)
    wanted = _with_execute(entries, account)
    if wanted == entries:
        return False
    made = _check(library.acl_from_text("\n".join(wanted).encode()))
    try:
        if library.acl_set_fd(directory, made):
            raise _last_error()
    finally:
        library.acl_free(made)
    return True


def _with_execute(entries: Sequence[str], account: pwd.struct_passwd) -> list[str]:
    """Return the entries with execute permission for the account. The mask, which limits all entries of accounts and groups, gets
    only this permission, too, so what it has withheld stays withheld."""
    names = (f"user:{account.pw_name}:", f"user:{account.pw_uid}:")
    own = next((entry for entry in entries if entry.startswith(names)), f"{names[1]}---")
    group = next(entry for entry in entries if entry.startswith("group::"))
    mask = next((entry for entry in entries if entry.startswith("mask::")), f"mask::{group.removeprefix('group::')}")
    others = [entry for entry in entries if entry not in (own, mask)]
    return sorted([*others, own[:-1] + _EXECUTE, mask[:-1] + _EXECUTE])


def _entries(library: CDLL, directory: int) -> list[str]:
    """Return entries such as `user:name:r-x`, sorted, without remarks about what the mask withholds."""
    acl = _check(library.acl_get_fd(directory))
    try:
        text = _check(library.acl_to_text(acl, None))
        try:
            lines = ctypes.string_at(text).decode().splitlines()
        finally:
            library.acl_free(text)
    finally:
        library.acl_free(acl)
    return sorted(line.split("\t")[0].strip() for line in lines if line.strip())


def _library() -> CDLL:
    library = CDLL(_LIBRARY, use_errno=True)
    for name, arguments, result in (
        ("acl_get_fd", [c_int], c_void_p),
        ("acl_set_fd", [c_int, c_void_p], c_int),
        ("acl_to_text", [c_void_p, c_void_p], c_void_p),
        ("acl_from_text", [c_char_p], c_void_p),
        ("acl_free", [c_void_p], c_int),
    ):
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result
    return library


def _check(pointer: int | None) -> int:
    if not pointer:
        raise _last_error()
    return pointer


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


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

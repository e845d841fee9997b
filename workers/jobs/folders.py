"""Folders and files below the media root, opened one name after the other without following links.

The account of steps may write below `.jobs`, so it may put a link in place of any folder there. The worker may be root.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import ELOOP, ENXIO
from pathlib import Path
from typing import Final

from workers.jobs.media_paths import JOBS

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER_MODE: Final = 0o750
_UNFINISHED: Final = 0o700
"""The mode of a folder until it has its group."""
FILE_MODE: Final = 0o640


class NotOurs(OSError):
    """What is to be published is no file that a step has made."""


@contextmanager
def folder(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder below the root. With `make` what is missing is made. Raises `OSError`."""
    group = _group(root, parts) if make else -1
    current = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, _UNFINISHED, dir_fd=current)
            child = os.open(part, _FOLDER, dir_fd=current)
            os.close(current)
            current = child
            if make and part != JOBS:
                _finish(current, group)
        yield current
    finally:
        os.close(current)


def remove(root: Path, parts: Sequence[str]) -> None:
    """Delete the folder with all that is in it, as far as possible."""
    try:
        with folder(root, parts[:-1]) as parent:
            shutil.rmtree(parts[-1], ignore_errors=True, dir_fd=parent)
    except OSError:
        return  # it is not there


def publish(root: Path, made: Sequence[str], *, named: Sequence[str]) -> None:
    """Move a file to its place, with the mode and the group of published files. Raises `FileNotFoundError` when there is none to be
    moved, and `NotOurs`."""
    with folder(root, made[:-1]) as source, folder(root, named[:-1], make=True) as target:
        status = os.stat(made[-1], dir_fd=source, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in _owners(root):
            raise NotOurs("it is no file, or of another user")
        os.replace(made[-1], named[-1], src_dir_fd=source, dst_dir_fd=target)
        _take_over(target, name=named[-1], number=status.st_ino, group=_group(root, named))


def finish_publishing(root: Path, named: Sequence[str]) -> None:
    """Take over a file that an earlier `publish` moved: its worker may have died before it did so. Raises `OSError`."""
    with folder(root, named[:-1]) as target:
        status = os.stat(named[-1], dir_fd=target, follow_symlinks=False)
        if status.st_uid in _owners(root):
            _take_over(target, name=named[-1], number=status.st_ino, group=_group(root, named))


def open_made(root: Path, made: Sequence[str]) -> int:
    """A descriptor of a file that a step has made. Raises `OSError`, and `NotOurs`."""
    with folder(root, made[:-1]) as source:
        file = os.open(made[-1], FILE, dir_fd=source)
    status = os.fstat(file)
    if stat.S_ISREG(status.st_mode) and status.st_uid in _owners(root):
        return file
    os.close(file)
    raise NotOurs("it is no file, or of another user")


def numbered(folder: Path) -> list[int]:
    """The names in a folder that are numbers; none where there is no folder."""
    try:
        return [int(name) for name in os.listdir(folder) if name.isascii() and name.isdigit()]
    except FileNotFoundError:
        return []


def sync(root: Path, parts: Sequence[str]) -> None:
    """A rename is durable when its folder is synced."""
    with folder(root, parts) as opened:
        os.fsync(opened)


def _take_over(target: int, *, name: str, number: int, group: int) -> None:
    """Between the look at the file and its move the account may have put something else there."""
    try:
        file = os.open(name, FILE, dir_fd=target)
    except OSError as fault:
        if fault.errno not in (ELOOP, ENXIO):  # a link or a socket; anything else says nothing of what is there
            raise
        os.unlink(name, dir_fd=target)
        raise NotOurs("it was replaced") from None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            os.unlink(name, dir_fd=target)
            raise NotOurs("it was replaced")
        if status.st_ino != number:  # another run has published its file since
            raise NotOurs("it was replaced")
        open_to_group(file, group)
    finally:
        os.close(file)


def open_to_group(file: int, group: int) -> None:
    """The mode of published files, for a file of the worker."""
    if os.geteuid() == 0:
        os.fchown(file, 0, group)
    os.fchmod(file, FILE_MODE)


def _finish(made: int, group: int) -> None:
    """The mode and the group of a folder that was just made, or whose maker died before it could give them: steps and readers
    would be refused there for ever."""
    status = os.fstat(made)
    if status.st_uid == os.geteuid() and status.st_mode & 0o777 == _UNFINISHED:
        if os.geteuid() == 0:
            os.fchown(made, -1, group)
        os.fchmod(made, FOLDER_MODE)


def _group(root: Path, parts: Sequence[str]) -> int:
    """Of what is published there. What a later step of the job reads is of the account's group, which the folder of jobs has;
    all else is of the root's. Where that is the group of the user root, as on a disk that was just mounted, it serves nobody, and
    the account's group stands in for it."""
    own = os.stat(root).st_gid
    if own != 0 and JOBS not in parts[:1]:
        return own
    try:
        return os.stat(root / JOBS, follow_symlinks=False).st_gid
    except FileNotFoundError:
        return own


def _owners(root: Path) -> set[int]:
    """Who may have made the files of steps: the account that the folder of jobs belongs to, or a worker that is not root. A file of
    root is one that the account has linked to."""
    account = os.stat(root / JOBS, follow_symlinks=False).st_uid
    return {account} if os.geteuid() == 0 else {account, os.geteuid()}

"""Folders and files below the media root, opened component by component without following links.

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

from workers.job.media_paths import JOBS

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER_MODE: Final = 0o750
_UNFINISHED: Final = 0o700
"""The mode of a folder until its group is set."""
FILE_MODE: Final = 0o640


class ForeignFile(OSError):
    """Raised when the source of a publication is not a regular file that a step has made."""


@contextmanager
def folder(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """Open a folder below the root, and yield its descriptor. With `make`, missing folders are created. Raises `OSError`."""
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
    """Delete a folder with everything in it, as far as possible."""
    try:
        with folder(root, parts[:-1]) as parent:
            shutil.rmtree(parts[-1], ignore_errors=True, dir_fd=parent)
    except OSError:
        return  # it does not exist


def publish(root: Path, source_parts: Sequence[str], *, target_parts: Sequence[str]) -> None:
    """Move a file to its place, with the mode and the group of published files.

    Raises `FileNotFoundError` if the file does not exist, and `ForeignFile` if it is not a file of a step.
    """
    with folder(root, source_parts[:-1]) as source, folder(root, target_parts[:-1], make=True) as target:
        status = os.stat(source_parts[-1], dir_fd=source, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in _owners(root):
            raise ForeignFile("it is not a regular file, or belongs to another user")
        os.replace(source_parts[-1], target_parts[-1], src_dir_fd=source, dst_dir_fd=target)
        _take_over(target, name=target_parts[-1], number=status.st_ino, group=_group(root, target_parts))


def finish_publishing(root: Path, parts: Sequence[str]) -> None:
    """Take over a file that an earlier `publish` moved: its worker may have died before it did so. Raises `OSError`."""
    with folder(root, parts[:-1]) as target:
        status = os.stat(parts[-1], dir_fd=target, follow_symlinks=False)
        if status.st_uid in _owners(root):
            _take_over(target, name=parts[-1], number=status.st_ino, group=_group(root, parts))


def open_output(root: Path, parts: Sequence[str]) -> int:
    """Return a descriptor of a file that a step has made. Raises `OSError` and `ForeignFile`."""
    with folder(root, parts[:-1]) as source:
        file = os.open(parts[-1], FILE, dir_fd=source)
    status = os.fstat(file)
    if stat.S_ISREG(status.st_mode) and status.st_uid in _owners(root):
        return file
    os.close(file)
    raise ForeignFile("it is not a regular file, or belongs to another user")


def numeric_names(folder: Path) -> list[int]:
    """Return the names in a folder that are numbers, or an empty list if the folder does not exist."""
    try:
        return [int(name) for name in os.listdir(folder) if name.isascii() and name.isdigit()]
    except FileNotFoundError:
        return []


def sync(root: Path, parts: Sequence[str]) -> None:
    """Sync a folder to disk, which makes the renames in it durable."""
    with folder(root, parts) as opened:
        os.fsync(opened)


def _take_over(target: int, *, name: str, number: int, group: int) -> None:
    """Give a published file its mode and group, unless it was replaced.

    Between the check of the file and its move, the account of steps may have put something else in its place.
    """
    try:
        file = os.open(name, FILE, dir_fd=target)
    except OSError as fault:
        if fault.errno not in (ELOOP, ENXIO):  # a link or a socket; any other error does not tell what is there
            raise
        os.unlink(name, dir_fd=target)
        raise ForeignFile("it was replaced") from None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            os.unlink(name, dir_fd=target)
            raise ForeignFile("it was replaced")
        if status.st_ino != number:  # another run has published its file since
            raise ForeignFile("it was replaced")
        open_to_group(file, group)
    finally:
        os.close(file)


def open_to_group(file: int, group: int) -> None:
    """Give a file of the worker the mode of published files."""
    if os.geteuid() == 0:
        os.fchown(file, 0, group)
    os.fchmod(file, FILE_MODE)


def _finish(descriptor: int, group: int) -> None:
    """Set the mode and the group of a folder that was just made, or whose creator died before it could set them.

    Without them, steps and readers would be refused there for ever.
    """
    status = os.fstat(descriptor)
    if status.st_uid == os.geteuid() and status.st_mode & 0o777 == _UNFINISHED:
        if os.geteuid() == 0:
            os.fchown(descriptor, -1, group)
        os.fchmod(descriptor, FOLDER_MODE)


def _group(root: Path, parts: Sequence[str]) -> int:
    """Return the group of files that are published there.

    Files that a later step of the job reads get the group of the account, which the folder of jobs has; all others get the group of
    the root. If the root's group is that of the user root, as on a disk that was just mounted, it would be of no use to readers, so
    the account's group is used instead.
    """
    own = os.stat(root).st_gid
    if own != 0 and JOBS not in parts[:1]:
        return own
    try:
        return os.stat(root / JOBS, follow_symlinks=False).st_gid
    except FileNotFoundError:
        return own


def _owners(root: Path) -> set[int]:
    """Return the users that may own the files of steps.

    They are the account that owns the folder of jobs and, if the worker is not root, the worker's own user. A file that belongs to
    root is one that the account has linked to.
    """
    account = os.stat(root / JOBS, follow_symlinks=False).st_uid
    return {account} if os.geteuid() == 0 else {account, os.geteuid()}

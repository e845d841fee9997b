"""Published files below a directory: the adapter of `MediaFiles` without a bucket."""

from __future__ import annotations

import asyncio
import heapq
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from errno import EISDIR, ELOOP, ENOENT, ENOTDIR
from operator import attrgetter
from pathlib import Path
from typing import Final, TypeVar

from domain.kernel.media_files import MediaFile, is_published_path

T = TypeVar("T")

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ABSENT: Final = (ENOENT, ENOTDIR, EISDIR, ELOOP)
"""The last is a link where a file was expected."""


class MediaDirectory:
    """Each name of a path is opened below the one before, and no link is followed: what a link names is not there. So a folder
    that is replaced by a link while it is read leads nowhere. All of it blocks, and is done in threads."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def find(self, path: str) -> MediaFile | None:
        return await asyncio.to_thread(_if_there, lambda: self._find(path), None)

    async def list(self, folder: str, *, limit: int) -> Sequence[MediaFile]:
        return await asyncio.to_thread(_if_there, lambda: self._list(folder, limit), ())

    async def read(self, path: str, *, limit: int) -> bytes | None:
        return await asyncio.to_thread(_if_there, lambda: self._read(path, limit), None)

    async def remove(self, path: str) -> None:
        await asyncio.to_thread(_if_there, lambda: self._remove(path), None)

    def _find(self, path: str) -> MediaFile | None:
        with self._folder_of(path) as (folder, name):
            return _described(path, os.stat(name, dir_fd=folder, follow_symlinks=False))

    def _list(self, folder: str, limit: int) -> Sequence[MediaFile]:
        with self._folder(folder) as opened:
            return heapq.nsmallest(limit + 1, _below(opened, folder), key=attrgetter("path"))

    def _read(self, path: str, limit: int) -> bytes | None:
        with self._folder_of(path) as (folder, name), open(os.open(name, _FILE, dir_fd=folder), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            content = file.read(limit + 1)
        if len(content) > limit:
            raise ValueError(f"{path} has more than {limit} bytes")
        return content

    def _remove(self, path: str) -> None:
        with self._folder_of(path) as (folder, name):
            if stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=folder)
                os.fsync(folder)

    @contextmanager
    def _folder_of(self, path: str) -> Iterator[tuple[int, str]]:
        """The folder in which the file lies, and its name there."""
        folder, _, name = path.rpartition("/")
        if not is_published_path(name):
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT), path)
        with self._folder(folder) as opened:
            yield opened, name

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        """An empty path is the root."""
        if path and not is_published_path(path):
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT), path)
        current = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in path.split("/") if path else []:
                child = os.open(name, _FOLDER, dir_fd=current)
                os.close(current)
                current = child
            yield current
        finally:
            os.close(current)


def _if_there(look: Callable[[], T], absent: T) -> T:
    try:
        return look()
    except OSError as fault:
        if fault.errno in _ABSENT:
            return absent
        raise


def _below(folder: int, path: str) -> Iterator[MediaFile]:
    for parent, folders, names, opened in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        folders[:] = [name for name in folders if is_published_path(name)]
        inside = [part for part in (path, parent.removeprefix(".").lstrip("/")) if part]
        for name in filter(is_published_path, names):
            try:
                status = os.stat(name, dir_fd=opened, follow_symlinks=False)
            except FileNotFoundError:
                continue  # removed a moment ago
            found = _described("/".join([*inside, name]), status)
            if found is not None:
                yield found


def _described(path: str, status: os.stat_result) -> MediaFile | None:
    if not stat.S_ISREG(status.st_mode):
        return None
    return MediaFile(path, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))

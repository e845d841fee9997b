"""Published files below a directory: the adapter of `MediaFiles` without a bucket."""

from __future__ import annotations

import asyncio
import heapq
import os
import stat
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from errno import EIO, EISDIR, ELOOP, ENOENT, ENOTDIR
from io import FileIO
from operator import attrgetter
from pathlib import Path
from secrets import token_hex
from typing import Final, TypeVar

from domain.kernel.media_files import MediaFile, is_published_path

T = TypeVar("T")

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_THREADS: Final = 16
PIECE: Final = 256 * 1024
"""The bytes of a file that are in memory at a time, for each client."""
_ABSENT: Final = (ENOENT, ENOTDIR, EISDIR, ELOOP)
"""Errors that mean that a file does not exist. The last one is a link in place of a file."""


class MediaDirectory:
    """The files below a directory. Each name of a path is opened below the one before, and no link is followed: the target of a
    link does not exist. So a folder that is replaced by a link while it is read leads nowhere. All operations block and run in
    separate threads: a disk that does not answer does not delay other work of the process."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="media")

    async def find(self, path: str) -> MediaFile | None:
        return await self._if_there(lambda: self._find(path), None)

    async def list(self, folder: str, *, limit: int) -> Sequence[MediaFile]:
        return await self._if_there(lambda: self._list(folder, limit), ())

    async def read(self, path: str, *, limit: int) -> bytes | None:
        return await self._if_there(lambda: self._read(path, limit), None)

    async def replace(self, only: MediaFile, content: bytes) -> bool:
        return await self._if_there(lambda: self._replace(only, content), False)

    async def remove(self, path: str, *, only: MediaFile | None = None) -> None:
        await self._if_there(lambda: self._remove(path, only), None)

    async def open(self, path: str) -> OpenFile | None:
        return await self._if_there(lambda: self._open(path), None)

    async def _if_there(self, look: Callable[[], T], absent: T) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, _if_there, look, absent)

    def _open(self, path: str) -> OpenFile | None:
        with self._folder_of(path) as (folder, name):
            file = FileIO(os.open(name, _FILE, dir_fd=folder))
        status = os.fstat(file.fileno())
        media_file = _media_file(path, status)
        if media_file is None:
            file.close()
            return None
        return OpenFile(
            file, media_file, etag=f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}", threads=self._threads
        )

    def _find(self, path: str) -> MediaFile | None:
        with self._folder_of(path) as (folder, name):
            return _media_file(path, os.stat(name, dir_fd=folder, follow_symlinks=False))

    def _list(self, folder: str, limit: int) -> Sequence[MediaFile]:
        with self._folder(folder) as opened:
            return heapq.nsmallest(limit + 1, _files_below(opened, folder), key=attrgetter("path"))

    def _read(self, path: str, limit: int) -> bytes | None:
        with self._folder_of(path) as (folder, name), open(os.open(name, _FILE, dir_fd=folder), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            content = file.read(limit + 1)
        if len(content) > limit:
            raise ValueError(f"{path} has more than {limit} bytes")
        return content

    def _replace(self, only: MediaFile, content: bytes) -> bool:
        """Replace a file. The new one gets the mode and the group of the old one, and its owner if this process may set it."""
        with self._folder_of(only.path) as (folder, name):
            before, made = os.stat(name, dir_fd=folder, follow_symlinks=False), f".{name}.{token_hex(8)}"
            try:
                with open(os.open(made, _NEW, 0o600, dir_fd=folder), "wb") as file:
                    file.write(content)
                    _give(file.fileno(), before)
                    file.flush()
                    os.fsync(file.fileno())
                if _media_file(only.path, os.stat(name, dir_fd=folder, follow_symlinks=False)) != only:
                    return False
                os.rename(made, name, src_dir_fd=folder, dst_dir_fd=folder)
                os.fsync(folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(made, dir_fd=folder)
        return True

    def _remove(self, path: str, only: MediaFile | None) -> None:
        with self._folder_of(path) as (folder, name):
            there = _media_file(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
            if there is not None and only in (None, there):
                os.unlink(name, dir_fd=folder)
                os.fsync(folder)

    @contextmanager
    def _folder_of(self, path: str) -> Iterator[tuple[int, str]]:
        """Open the folder of the file and return it with the file's name."""
        folder, _, name = path.rpartition("/")
        if not is_published_path(name):
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT), path)
        with self._folder(folder) as opened:
            yield opened, name

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        """Open a folder; an empty path is the root."""
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


class OpenFile:
    """An open file. It does not change when another one is put in its place."""

    def __init__(self, raw: FileIO, file: MediaFile, *, etag: str, threads: ThreadPoolExecutor) -> None:
        self._raw = raw
        self._threads = threads
        self.file = file
        self.etag = etag

    async def read(self, start: int, size: int) -> AsyncGenerator[bytes, None]:
        loop, at, end = asyncio.get_running_loop(), start, start + size
        while at < end:
            piece = await loop.run_in_executor(self._threads, os.pread, self._raw.fileno(), min(PIECE, end - at), at)
            if not piece:
                raise OSError(EIO, f"{self.file.path} has become shorter")
            yield piece
            at += len(piece)

    async def close(self) -> None:
        self._raw.close()


def _give(file: int, before: os.stat_result) -> None:
    owner = before.st_uid if os.geteuid() == 0 else -1
    with suppress(PermissionError):  # of a group that this process is not in
        os.fchown(file, owner, before.st_gid)
    os.fchmod(file, stat.S_IMODE(before.st_mode))


def _if_there(look: Callable[[], T], absent: T) -> T:
    try:
        return look()
    except OSError as fault:
        if fault.errno in _ABSENT:
            return absent
        raise


def _files_below(folder: int, path: str) -> Iterator[MediaFile]:
    for parent, folders, names, opened in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        folders[:] = [name for name in folders if is_published_path(name)]
        inside = [part for part in (path, parent.removeprefix(".").lstrip("/")) if part]
        for name in filter(is_published_path, names):
            try:
                status = os.stat(name, dir_fd=opened, follow_symlinks=False)
            except FileNotFoundError:
                continue  # removed a moment ago
            media_file = _media_file("/".join([*inside, name]), status)
            if media_file is not None:
                yield media_file


def _media_file(path: str, status: os.stat_result) -> MediaFile | None:
    if not stat.S_ISREG(status.st_mode):
        return None
    return MediaFile(path, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))

"""A target in a directory of this machine, below the root that the operator allows, such as a mounted share.

Each directory is opened below its parent, without following links, so that no link leads out of the root.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EDQUOT, EFBIG, ELOOP, ENOENT, ENOSPC, ENOTDIR
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from workers.adapters.targets import published_names
from workers.adapters.targets.files import FileTarget
from workers.ports.targets import Details, PublicationOrder, TargetFailed, UploadProgress, UploadSource, UploadState

PART: Final = 64 * 1024 * 1024
_PIECE: Final = 4 * 1024 * 1024
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_NOFOLLOW | os.O_CLOEXEC
_READABLE: Final = 0o644
_FULL: Final = (ENOSPC, EDQUOT, EFBIG)


class FilesystemTarget(FileTarget):
    """The target. Its configuration is `path`, relative to the root or absolute below it."""

    def __init__(self, config: Mapping[str, Any], *, root: Path | None, part: int = PART) -> None:
        self._config = config
        self._root = root
        self._part = part

    async def check(self) -> None:
        await asyncio.to_thread(self._check)

    async def upload(
        self,
        source: UploadSource,
        order: PublicationOrder,
        *,
        state: UploadState | None,
        save: Callable[[UploadState], Awaitable[None]],
        progress: Callable[[UploadProgress], None],
    ) -> Details:
        name = published_names.file_name(order)
        at = _offset(state, source)
        with _translate_faults():
            folder = await asyncio.to_thread(self._open_folder)
            try:
                if at == source.size and await asyncio.to_thread(_hash, folder, name) == source.sha256:
                    return self._details(name, source)
                at = await asyncio.to_thread(_prepare, folder, name, at)
                while at < source.size:
                    at = await self._copy_part(source, folder, name, at=at, progress=progress)
                    await save({"at": at, "sha256": source.sha256})
                await asyncio.to_thread(_finish, folder, name, source.sha256)
            finally:
                os.close(folder)
        return self._details(name, source)

    async def query(self, order: PublicationOrder, details: Details) -> Details | None:
        return await asyncio.to_thread(self._query, published_names.file_name(order), details)

    async def delete(self, order: PublicationOrder, details: Details | None) -> None:
        await asyncio.to_thread(self._delete, published_names.file_name(order))

    async def close(self) -> None:
        return None

    async def _copy_part(
        self, source: UploadSource, folder: int, name: str, *, at: int, progress: Callable[[UploadProgress], None]
    ) -> int:
        """Copy one part, sync it to the disk, and return its end. It is copied in pieces, between which it can be cancelled."""
        end = min(at + self._part, source.size)
        with source.path.open("rb") as read, _open_file(folder, _partial(name), os.O_RDWR) as write:
            while at < end:
                at += await asyncio.to_thread(_copy, read.fileno(), write, at, min(_PIECE, end - at))
                progress(UploadProgress(at, source.size))
            await asyncio.to_thread(os.fsync, write)
        return at

    def _open_folder(self) -> int:
        """Return a descriptor of the folder."""
        if self._root is None:
            raise TargetFailed(
                "destination", "Files are not published to this machine: its operator sets MEDIALEDGER_FILESYSTEM_ROOT to allow it."
            )
        path = Path(published_names.text(self._config, "path"))
        if path.is_absolute() and not path.is_relative_to(self._root):
            raise TargetFailed(
                "destination", "The path is not below the operator's MEDIALEDGER_FILESYSTEM_ROOT: choose one below it."
            )
        parts = path.relative_to(self._root).parts if path.is_absolute() else path.parts
        if ".." in parts or not all(part.isprintable() for part in parts):
            raise TargetFailed("destination", "The path may contain neither '..' nor unprintable characters.")
        opened = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in parts:
            try:
                below = os.open(part, _FOLDER, dir_fd=opened)
            finally:
                os.close(opened)
            opened = below
        return opened

    def _check(self) -> None:
        probe, moved = (f"{published_names.PROBE}{uuid4().hex}" for _ in range(2))
        with _translate_faults():
            folder = self._open_folder()
            try:
                with _open_file(folder, probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as file:
                    os.write(file, probe.encode())
                    os.fsync(file)
                os.rename(probe, moved, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                for name in (probe, moved):
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=folder)
                os.close(folder)

    def _query(self, name: str, details: Details) -> Details | None:
        with _translate_faults():
            folder = self._open_folder()
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                return None
            finally:
                os.close(folder)
        return {**details, "size": status.st_size}

    def _delete(self, name: str) -> None:
        with _translate_faults():
            folder = self._open_folder()
            try:
                for path in (_partial(name), name):
                    with suppress(FileNotFoundError):
                        os.unlink(path, dir_fd=folder)
                os.fsync(folder)
            finally:
                os.close(folder)

    def _details(self, name: str, source: UploadSource) -> Details:
        return {"link": name, "size": source.size, "sha256": source.sha256}


def _partial(name: str) -> str:
    return f".{name}.part"


def _offset(state: UploadState | None, source: UploadSource) -> int:
    """Return the size of what an earlier attempt has synced of this file."""
    match state:
        case {"at": int(at), "sha256": source.sha256} if 0 <= at <= source.size:
            return at
    return 0


@contextmanager
def _open_file(folder: int, name: str, flags: int) -> Iterator[int]:
    file = os.open(name, flags | _FILE, _READABLE, dir_fd=folder)
    try:
        yield file
    finally:
        os.close(file)


def _prepare(folder: int, name: str, at: int) -> int:
    """Prepare the partial file and return the offset at which the copy continues: 0 if the earlier part no longer exists."""
    with _open_file(folder, _partial(name), os.O_RDWR | os.O_CREAT) as file:
        os.fchmod(file, _READABLE)
        at = at if os.fstat(file).st_size >= at else 0
        os.ftruncate(file, at)
    return at


def _copy(read: int, write: int, at: int, size: int) -> int:
    try:
        copied = os.copy_file_range(read, write, size, at, at)
    except OSError as fault:
        if fault.errno in _FULL:
            raise
        copied = os.pwrite(write, os.pread(read, size, at), at)  # not supported between some file systems
    if not copied:
        raise TargetFailed("media", "The file became shorter while it was uploaded.")
    return copied


def _finish(folder: int, name: str, sha256: str) -> None:
    """Rename the file if its hash, read from its new place, is correct."""
    if _hash(folder, _partial(name)) != sha256:
        os.unlink(_partial(name), dir_fd=folder)
        raise TargetFailed("retry", "The file at the destination differs from the copied one: its hash is different.")
    os.rename(_partial(name), name, src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)


def _hash(folder: int, name: str) -> str | None:
    with (
        suppress(FileNotFoundError),
        _open_file(folder, name, os.O_RDONLY) as descriptor,
        os.fdopen(os.dup(descriptor), "rb") as file,
    ):
        return hashlib.file_digest(file, "sha256").hexdigest()
    return None


@contextmanager
def _translate_faults() -> Iterator[None]:
    """Translate faults of the system to `TargetFailed`, with the message of the system but without the path."""
    try:
        yield
    except OSError as fault:
        raise _failure(fault) from None


def _failure(fault: OSError) -> TargetFailed:
    if fault.errno in _FULL:
        return TargetFailed("destination", "The file system of the destination has no space left: make room there.")
    if fault.errno in (ELOOP, ENOTDIR):
        return TargetFailed("destination", "The path leads through a link or a file: use the path of the directory itself.")
    if fault.errno == ENOENT:
        return TargetFailed("destination", "The directory does not exist: create it, or mount it.")
    if isinstance(fault, PermissionError):
        return TargetFailed("destination", "The directory is not writable: grant write permission to the account of the workers.")
    return TargetFailed("retry", f"The file system of the destination fails: {os.strerror(fault.errno or 0)}.")

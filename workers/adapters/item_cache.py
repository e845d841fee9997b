"""Files of items from other machines, fetched in advance into a folder of limited size.

    <root>/<hash of the source and its version>           a complete file
    <root>/.<hash>.<id>                                   a file that is being fetched

Only the worker reads the folder: decoders get descriptors. A file that is removed while it is on the air stays readable to its end.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, Final

from domain.kernel.errors import Unavailable
from domain.kernel.ids import new_id
from projections.kernel.background_task import BackgroundTask, start_task
from workers.kernel.worker import SharedWorker
from workers.ports.outbound import OutboundFailed, OutboundRefused
from workers.ports.playout import ITEM_LIMITS, ItemLimits, Unplayable

Fetch = Callable[[Path, int], Awaitable[None]]
"""Writes the file, at most this many bytes."""

_AT_ONCE: Final = 2
_SWEEP: Final = 600.0
_ABANDONED: Final = 3600.0
"""Seconds without a write after which an incomplete file counts as left behind by a dead worker."""


@dataclass(eq=False)
class ItemCache(BackgroundTask, SharedWorker):
    """The cache of one process. Several processes may share the folder. Its background task removes old files, even while nothing
    is played."""

    WHAT: ClassVar[str] = "files of items"

    root: Path
    limits: ItemLimits = ITEM_LIMITS
    _fetching: dict[str, asyncio.Task[str]] = field(default_factory=dict)
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def open(self, what: str, fetch: Fetch, *, within: float) -> int:
        """Return the descriptor of the file. Raises `Unplayable` if it cannot be fetched, or is not complete within this many
        seconds; fetching then continues."""
        name = _name(what)
        descriptor = await asyncio.to_thread(self._open, name)
        if descriptor is not None:
            return descriptor
        task = self._fetch_task(name, fetch)
        done, _ = await asyncio.wait({task}, timeout=within)
        if not done:
            raise Unplayable("Its file is still being fetched.")
        if fault := task.result():
            raise Unplayable(fault)
        descriptor = await asyncio.to_thread(self._open, name)
        if descriptor is None:
            raise Unplayable("Its file was removed from the cache before it was read.")
        return descriptor

    def expect(self, what: str, fetch: Fetch) -> None:
        """Fetch a file that will be opened soon."""
        if not (self.root / _name(what)).exists():
            self._fetch_task(_name(what), fetch)

    async def _turn(self) -> None:
        await asyncio.to_thread(self.sweep)
        await asyncio.sleep(_SWEEP)

    async def stop(self) -> None:
        await super().stop()
        tasks = list(self._fetching.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def sweep(self, *, room: int = 0) -> None:
        """Remove files that are too old, and then the least recently used ones until there is room for this many bytes."""
        files = [(path, status) for path, status in self._files() if not self._is_old(path, status)]
        total = sum(status.st_size for _, status in files)
        whole = sorted((status.st_atime, status.st_size, path) for path, status in files if not path.name.startswith("."))
        for _, size, path in whole:
            if total + room <= self.limits.size and shutil.disk_usage(self.root).free - room >= self.limits.free:
                return
            path.unlink(missing_ok=True)
            total -= size

    def _fetch_task(self, name: str, fetch: Fetch) -> asyncio.Task[str]:
        """Return the task that fetches the file. Its result is why it failed, empty if the file is here."""
        task = self._fetching.get(name)
        if task is None:
            task = self._fetching[name] = start_task(self._fetch(name, fetch), what="file of an item")
            task.add_done_callback(lambda _: self._fetching.pop(name))
        return task

    async def _fetch(self, name: str, fetch: Fetch) -> str:
        async with self._turns:
            part = self.root / f".{name}.{new_id().hex}"
            try:
                await asyncio.to_thread(self._prepare)
                await fetch(part, await asyncio.to_thread(self._most))
                await asyncio.to_thread(self.sweep)
                await asyncio.to_thread(os.replace, part, self.root / name)
            except (OutboundRefused, OutboundFailed, Unplayable) as fault:
                return str(fault)
            except (Unavailable, OSError) as fault:
                return f"Its file cannot be fetched: {type(fault).__name__}."
            finally:
                with suppress(OSError):
                    part.unlink(missing_ok=True)
        return ""

    def _prepare(self) -> None:
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.sweep()

    def _most(self) -> int:
        """Return the size limit of one file in bytes. Other files are removed when it is complete; the disk's reserved space stays
        free all the time."""
        return max(min(self.limits.size, shutil.disk_usage(self.root).free - self.limits.free), 0)

    def _open(self, name: str) -> int | None:
        path = self.root / name
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        status = os.fstat(descriptor)
        if self._is_old(path, status):
            os.close(descriptor)
            return None
        with suppress(OSError):
            os.utime(path, ns=(time.time_ns(), status.st_mtime_ns))
        return descriptor

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        files = []
        with suppress(FileNotFoundError), os.scandir(self.root) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    files.append((Path(entry.path), entry.stat(follow_symlinks=False)))
        return [(path, status) for path, status in files if not self._was_abandoned(path, status)]

    def _is_old(self, path: Path, status: os.stat_result) -> bool:
        if path.name.startswith(".") or time.time() - status.st_mtime <= self.limits.age:
            return False
        path.unlink(missing_ok=True)
        return True

    def _was_abandoned(self, path: Path, status: os.stat_result) -> bool:
        if not path.name.startswith(".") or time.time() - status.st_mtime <= _ABANDONED:
            return False
        path.unlink(missing_ok=True)
        return True


def _name(what: str) -> str:
    return sha256(what.encode()).hexdigest()[:40]

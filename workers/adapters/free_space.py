"""Free space of the directories that the product fills: a metric, a warning, and the reason when there is none left."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from prometheus_client import CollectorRegistry, Gauge

from projections.kernel.background_task import BackgroundTask
from projections.kernel.sizes import MIB, shown

LOW: Final = 512 * MIB
NONE_LEFT: Final = 32 * MIB
"""The free space in bytes below which a disk counts as full: PostgreSQL ends when it cannot create the next segment of its log, of
16 MiB."""
_EVERY: Final = 10.0

_log = logging.getLogger(__name__)


def free_bytes(directory: Path) -> int:
    """Return the free bytes of the directory's disk for users other than root. If the directory does not exist yet, its nearest
    parent counts."""
    while not directory.exists() and directory != directory.parent:
        directory = directory.parent
    return shutil.disk_usage(directory).free


class FreeSpace(BackgroundTask):
    """Watches `directories`, given by their names in the metric. Low space is logged once, and again after it was sufficient in
    between."""

    WHAT: ClassVar[str] = "free space"

    def __init__(
        self,
        directories: Mapping[str, Path],
        *,
        registry: CollectorRegistry,
        free: Callable[[Path], int] = free_bytes,
        every: float = _EVERY,
    ) -> None:
        self._directories = directories
        self._free = free
        self._every = every
        self._low: set[str] = set()
        gauge = Gauge("medialedger_free_bytes", "Free space on the disk of a directory", ("directory",), registry=registry)
        for name, directory in directories.items():
            gauge.labels(name).set_function(partial(free, directory))

    async def start(self) -> None:
        self.look()
        await super().start()

    async def _turn(self) -> None:
        await asyncio.sleep(self._every)
        self.look()

    def look(self) -> None:
        for name, directory in self._directories.items():
            free = self._free(directory)
            if free >= LOW:
                self._low.discard(name)
            elif name not in self._low:
                self._low.add(name)
                _log.warning("the disk of the %s directory %s is nearly full: %s free", name, directory, shown(free))

    def shortage(self) -> str:
        """Return `no space left on …`, or an empty text."""
        for directory in self._directories.values():
            free = self._free(directory)
            if free < NONE_LEFT:
                return f"no space left on {directory} ({shown(free)} free)"
        return ""

"""Limits for the downloads of a step: the remote host decides how much it sends, and how fast."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Final

from projections.kernel.sizes import MIB
from workers.ports.outbound import DownloadLimits

_LOOK: Final = 64 * MIB
_FIRST: Final = 60.0
"""Seconds after which the rate is checked."""


class DownloadLimitReached(Exception):
    """Raised with one sentence when a download exceeds a limit. `final` means that another attempt would end in the same way."""

    def __init__(self, sentence: str, *, final: bool = False) -> None:
        super().__init__(sentence)
        self.final = final


def _free_space(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


class DownloadWatch:
    """Checks the downloads of one run of a step against the limits."""

    def __init__(
        self,
        limits: DownloadLimits,
        folder: Path,
        *,
        clock: Callable[[], float] = monotonic,
        free_space: Callable[[Path], int] = _free_space,
    ) -> None:
        self._limits = limits
        self._folder = folder
        self._clock = clock
        self._free_space = free_space
        self._before = 0.0
        self._since = 0.0
        self._got = 0
        self._size = 0
        self._look_at = 0

    def begin(self, offset: int) -> None:
        """Begin a download; `offset` is the current size of the file."""
        self._since = self._clock()
        self._size = offset
        self._look_at = 0

    def end(self) -> None:
        self._before += self._clock() - self._since

    def expects(self, offset: int, total: int | None) -> None:
        """Check the size of the file that the host has announced; `total` is None if it announced none."""
        self._size = offset
        self._check_size(total or 0)
        self._check_space((total or offset) - offset)

    def took(self, size: int) -> None:
        """Count bytes that are about to be written to the file."""
        self._got += size
        self._size += size
        self._check_size(self._size)
        if self._got >= self._look_at:
            self._look_at = self._got + _LOOK
            self._check_space(0)
        spent = self._before + self._clock() - self._since
        if spent > self._limits.seconds:
            raise DownloadLimitReached(f"The download took longer than {self._limits.seconds:g} s.")
        if spent > _FIRST and self._got < self._limits.rate * spent:
            raise DownloadLimitReached(
                f"The host sends {self._got / spent:.0f} bytes a second; at least {self._limits.rate} are required."
            )

    def _check_size(self, size: int) -> None:
        if size > self._limits.size:
            raise DownloadLimitReached(f"The file has more than {self._limits.size} bytes, which is the limit.", final=True)

    def _check_space(self, needed: int) -> None:
        if self._free_space(self._folder) - needed < self._limits.free:
            raise DownloadLimitReached(f"The disk would have less than {self._limits.free} bytes of free space.")

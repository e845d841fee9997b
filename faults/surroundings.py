"""The environment of a process: a small disk that can be filled, and a clock that can be set."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_SIZE: Final = 640 << 20
_PLACES: Final = ("/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib/faketime/libfaketimeMT.so.1")


class SmallDisk:
    """A separate file system at `place`, in memory. It needs root."""

    def __init__(self, place: Path, *, size: int = _SIZE) -> None:
        self._place = place
        self._size = size
        self._ballast = place / "ballast"

    def mount(self) -> None:
        self._place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self._size},mode=0755", "none", str(self._place)], check=True)

    def unmount(self) -> None:
        if os.path.ismount(self._place):
            subprocess.run(["umount", str(self._place)], check=True)

    def fill(self) -> None:
        """Fill the disk to the last byte."""
        size = 1 << 24
        with self._ballast.open("wb") as file:
            while size >= os.sysconf("SC_PAGE_SIZE"):
                try:
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, size)
                except OSError:
                    size //= 2

    def free(self) -> None:
        self._ballast.unlink()


def faketime() -> Path | None:
    """Return the library that shows a program another time; None if it is not installed."""
    return next((path for place in _PLACES for path in sorted(Path("/").glob(place.lstrip("/")))), None)


def faked_clock(deviation: Path) -> Mapping[str, str]:
    """Return the environment of a process whose clock is wrong by the seconds in this file, from the moment when they are written.

    Durations are measured correctly, as when a machine's clock is set.
    """
    return {
        "LD_PRELOAD": str(faketime()),
        "FAKETIME_TIMESTAMP_FILE": str(deviation),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }

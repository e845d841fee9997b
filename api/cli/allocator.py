"""How the C library keeps memory that was freed."""

from __future__ import annotations

import ctypes
from typing import Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
_LARGE: Final = 1_048_576
"""Bytes. What is as large has pages of its own, which go back to the system when it is freed."""


def return_freed_memory() -> None:
    """Without this glibc raises its threshold up to 32 MiB with the first large block that is freed, and keeps what is smaller: a
    process that has answered some large lists stays as large as it was then. Other C libraries have no such thresholds."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE)
        mallopt(_TRIM_THRESHOLD, 16 * _LARGE)
        mallopt(_ARENA_MAX, 2)

"""A counter of changes to clients in memory that several processes share, so that none answers from an outdated cache.

A change through one process takes effect in all others before its response is sent. Without `descriptor` the memory belongs to this
process alone.
"""

from __future__ import annotations

import mmap
from typing import Final

MOST_PROCESSES: Final = 256
SIZE: Final = 8 * MOST_PROCESSES


class ClientChanges:
    """The shared counter. Each process adds to its own cell, so no lock is needed; a reader compares all cells."""

    def __init__(self, descriptor: int = -1, *, cell: int = 0) -> None:
        self._memory = mmap.mmap(descriptor, SIZE)
        self._own = memoryview(self._memory).cast("Q")[cell : cell + 1]

    @property
    def seen(self) -> bytes:
        """The present value, which differs from an earlier value after every change."""
        return self._memory[:]

    def add(self) -> None:
        self._own[0] += 1

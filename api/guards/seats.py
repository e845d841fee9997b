"""Seats: a limited number of places that are taken and left, such as those of the subscribers of a stream."""

from __future__ import annotations

from collections import Counter
from typing import Protocol


class Seats(Protocol):
    """The seats of an application, also of one that runs in several processes. Each kind of seat has a name and a limit."""

    async def take(self, kind: str, most: int) -> bool:
        """Whether there was a free seat; it is taken until `leave`."""
        ...

    def leave(self, kind: str) -> None: ...


class OwnSeats:
    """The seats of one process."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()

    async def take(self, kind: str, most: int) -> bool:
        if self.taken[kind] >= most:
            return False
        self.taken[kind] += 1
        return True

    def leave(self, kind: str) -> None:
        self.taken[kind] -= 1
        if not self.taken[kind]:
            del self.taken[kind]

"""Seats: a limited number of places that are taken and left, such as those of the subscribers of a stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence


class Seats:
    """The seats of one process, which has an equal share of each limit with the other `processes`."""

    def __init__(self, processes: int = 1) -> None:
        self._processes = processes
        self.taken: Counter[str] = Counter()

    def take(self, wanted: Mapping[str, int]) -> Sequence[str]:
        """Take one seat of each kind, with its limit, and return the kinds. If one kind is full, take none."""
        if any(self.taken[kind] >= -(-most // self._processes) for kind, most in wanted.items()):
            return ()
        self.taken.update(wanted.keys())
        return tuple(wanted)

    def leave(self, kinds: Sequence[str]) -> None:
        self.taken.subtract(kinds)
        self.taken = +self.taken

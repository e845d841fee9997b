"""A cache of aggregates that is bounded by their weight in bytes."""

from __future__ import annotations

from operator import itemgetter
from typing import Final, Generic, NamedTuple, TypeVar

from cachetools import LRUCache
from pydantic_core import to_json

from domain.kernel.aggregate import AggregateRoot

R = TypeVar("R", bound=AggregateRoot)

NOTHING: Final = 2048
"""About the bytes of an aggregate without its content."""


_OBJECT: Final = 232
_ARRAY: Final = 72
_VALUE: Final = 96
"""What one of each takes in memory beside its text: an array of empty arrays takes twenty times its text."""


def memory_of(stored: bytes) -> int:
    """About how many bytes the values of a JSON text take in memory."""
    return len(stored) + _OBJECT * stored.count(b"{") + _ARRAY * stored.count(b"[") + _VALUE * stored.count(b",")


class Weighed(NamedTuple, Generic[R]):
    """An aggregate and about how many bytes it takes. The weight is never too low: that of the state when it was loaded,
    and of each event since."""

    root: R
    weight: int


def weigh(root: R) -> Weighed[R]:
    return Weighed(root, NOTHING + memory_of(to_json(root.snapshot())))


class WeighedCache(Generic[R]):
    """The aggregates that were kept or used last, by any key, up to `most` bytes."""

    def __init__(self, most: int) -> None:
        self._entries = LRUCache[str, Weighed[R]](most, getsizeof=itemgetter(1))

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def get(self, key: str) -> Weighed[R] | None:
        return self._entries.get(key)

    def pop(self, key: str) -> Weighed[R] | None:
        return self._entries.pop(key, None)

    def keep(self, key: str, entry: Weighed[R]) -> None:
        """One that is too heavy is not kept, and takes no other with it."""
        if entry.weight <= self._entries.maxsize:
            self._entries[key] = entry
        else:
            self._entries.pop(key, None)

    def clear(self) -> None:
        self._entries.clear()

"""A cache of aggregates that is limited by their total size in bytes."""

from __future__ import annotations

from operator import itemgetter
from typing import Final, Generic, NamedTuple, TypeVar

from cachetools import LRUCache
from pydantic_core import to_json

from domain.kernel.aggregate import AggregateRoot

R = TypeVar("R", bound=AggregateRoot)

NOTHING: Final = 2048
"""The approximate size in bytes of an aggregate without content."""


_OBJECT: Final = 232
_ARRAY: Final = 72
_VALUE: Final = 96
"""The bytes of memory that an object, an array and a value take in addition to their text. An array of empty arrays takes twenty
times its text."""


def memory_of(stored: bytes) -> int:
    """Return the approximate number of bytes that the values of a JSON text take in memory."""
    return len(stored) + _OBJECT * stored.count(b"{") + _ARRAY * stored.count(b"[") + _VALUE * stored.count(b",")


class Weighed(NamedTuple, Generic[R]):
    """An aggregate and its approximate size in bytes.

    The weight is never too low: it is the weight of the state when it was loaded, plus that of each event since.
    """

    root: R
    weight: int


def weigh(root: R) -> Weighed[R]:
    return Weighed(root, NOTHING + memory_of(to_json(root.snapshot())))


class SizedCache(Generic[R]):
    """A cache of the most recently used aggregates, by any key, up to `most` bytes."""

    def __init__(self, most: int) -> None:
        self._entries = LRUCache[str, Weighed[R]](most, getsizeof=itemgetter(1))

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def get(self, key: str) -> Weighed[R] | None:
        return self._entries.get(key)

    def pop(self, key: str) -> Weighed[R] | None:
        return self._entries.pop(key, None)

    def keep(self, key: str, entry: Weighed[R]) -> None:
        """Cache an aggregate. An aggregate that is too heavy is not cached, and evicts no other."""
        if entry.weight <= self._entries.maxsize:
            self._entries[key] = entry
        else:
            self._entries.pop(key, None)

    def clear(self) -> None:
        self._entries.clear()

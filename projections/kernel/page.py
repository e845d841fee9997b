"""A page of a list, and the part of the list that a caller requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

LARGEST = 1000


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """`size` is the requested size, at most the largest allowed; `total` counts all rows that the filter finds."""

    size: int
    total: int
    results: Sequence[T]


@dataclass(frozen=True, slots=True)
class Window:
    """Which part of a list: `number` counts from 1."""

    size: int = 20
    number: int = 1

    @property
    def limit(self) -> int:
        return min(self.size, LARGEST)

    @property
    def offset(self) -> int:
        return self.limit * (self.number - 1)


FIRST_PAGE = Window()

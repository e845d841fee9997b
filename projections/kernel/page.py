"""A page of a list, and what a caller may ask of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

LARGEST = 1000


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """`size` is the size that was asked for, cut to the largest allowed; `total` counts everything that the filter finds."""

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

"""A page of a list, and the part of the list that a caller requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

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


MOST_BYTES: Final = 4 * 1024 * 1024
"""Of stored content in one page. A larger page would hold up all other requests while it is read and written as JSON."""


def within_bytes(page: str, *, order: str) -> str:
    """A query for the first rows of `page` that have together at most `MOST_BYTES` in their column `state`, at least one. A last
    column says how many rows `page` has."""
    return f"""
SELECT page.* FROM (
    SELECT whole.*, sum(octet_length(state)) OVER (ORDER BY {order}) - octet_length(state) AS before, count(*) OVER () AS counted
    FROM ({page}) AS whole
) AS page WHERE before < {MOST_BYTES} ORDER BY {order}
"""

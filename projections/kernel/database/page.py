"""A page of a list, and the part of the list that a caller requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from domain.kernel.errors import DomainError
from projections.kernel.sizes import MIB

T = TypeVar("T")

LARGEST = 1000


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of results. `size` is the requested size; `total` counts all rows that match the filter."""

    size: int
    total: int
    results: Sequence[T]


@dataclass(frozen=True, slots=True)
class Window:
    """The requested part of a list. `number` counts pages from 1."""

    size: int = 20
    number: int = 1

    @property
    def limit(self) -> int:
        return min(self.size, LARGEST)

    @property
    def offset(self) -> int:
        return self.limit * (self.number - 1)


FIRST_PAGE = Window()


MOST_BYTES: Final = 4 * MIB
"""The bytes of stored content in one page. A larger page would delay all other requests while it is read and written as JSON."""


def within_bytes(page: str, *, order: str, content: str = "state") -> str:
    """Return a query for the first rows of `page` that together have at most `MOST_BYTES` in the column `content`, at least one
    row.

    The last column of the query holds the number of rows of `page`.
    """
    return f"""
SELECT page.* FROM (
    SELECT whole.*, sum(octet_length({content})) OVER (ORDER BY {order}) - octet_length({content}) AS before,
        count(*) OVER () AS counted
    FROM ({page}) AS whole
) AS page WHERE before < {MOST_BYTES} ORDER BY {order}
"""


ORDINARY: Final = 2 * MIB
"""The bytes of a page that is read immediately. Larger pages are read one after another."""

LARGEST_CONTENT: Final = 24 * MIB
"""The largest page that is returned, in bytes. It takes several times as much memory until the response is sent."""


class PageTooLarge(DomainError):
    """Raised when the rows of a page have too many bytes together. The caller can request a smaller page."""

    def __init__(self, size: int) -> None:
        super().__init__(f"the page has {size} bytes")
        self.size = size


def in_parts(keys: Iterable[tuple[T, int]], *, most: int = LARGEST) -> Iterator[list[T]]:
    """Yield keys, each given with the bytes of its content, in parts of at most `most` keys and `ORDINARY` bytes.

    A larger content is a part of its own. A list of any length is read in such parts, one after another.
    """
    part: list[T] = []
    size = 0
    for key, each in keys:
        if part and (len(part) == most or size + each > ORDINARY):
            yield part
            part, size = [], 0
        part.append(key)
        size += each
    if part:
        yield part


def sized(page: str, count: str, *, content: Sequence[str]) -> str:
    """Return a query for the rows of `page`, in its order, with two columns before theirs: the bytes of all their columns
    `content`, and the number that `count` selects.

    If there are more bytes than the parameter `bytes`, or the page is empty, the query returns one row in which the other columns
    are null. A join with a single row keeps the order.
    """
    row = " + ".join(f"octet_length({column})" for column in content)
    return f"""
WITH page AS MATERIALIZED ({page}), size AS (SELECT coalesce(sum({row}), 0)::bigint AS bytes FROM page)
SELECT size.bytes, ({count}), page.* FROM size LEFT JOIN page ON size.bytes <= %(bytes)s
"""

"""Paging of lists: size 20 and page 1 by default; numbers below 1 are answered with 400. See docs/reference/api/conventions.md."""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from api.http.body import split_pairs
from api.http.request import Request
from api.kernel.wire import Between, Flag, Integer, Wire, named_enum
from projections.kernel.database.page import Page, Window

_FURTHEST = 2**40
_NUMBER = "pageNumber"
_START = "startIndex"
_IN_PATH = "%/:@!$&'()*+,;=~"

Whole = Annotated[Integer, Between(1)]


def _direction(value: Any) -> bool:
    if isinstance(value, str) and value.upper() in ("ASC", "DESC"):
        return value.upper() == "DESC"
    raise PydanticCustomError("order", "must be ASC or DESC")


Descending = Annotated[bool, BeforeValidator(_direction), WithJsonSchema(named_enum("Order", ["ASC", "DESC"]))]
"""ASC or DESC; true is DESC. Write a default as clients write it: `Field(default="ASC", validate_default=True)`."""

NO_CACHE: Final = "Accepted without effect: responses always show the current state. Default false."


class PageQuery(Wire):
    """Query of a page of a list."""

    page_size: Whole = Field(default=20, description="Maximum number of entries. Default 20; sizes above 1000 are reduced to 1000.")
    page_number: Whole = Field(default=1, description="Number of the page, from 1. Default 1.")
    order: Descending = Field(
        default="ASC", validate_default=True, description="ASC (ascending) or DESC (descending). Default ASC."
    )
    no_cache: Flag = Field(default=False, description=NO_CACHE)

    @property
    def window(self) -> Window:
        return Window(self.page_size, min(self.page_number, _FURTHEST))


WHOLE: Final = 10_000
"""Entries of an array without a `pageSize`. If there are more, the header Link leads to the rest."""


class FreshQuery(Wire):
    """Query of a read of one resource."""

    no_cache: Flag = Field(default=False, description=NO_CACHE)


class ReferenceQuery(FreshQuery):
    """Query of a look-up by a reference id or external id."""

    id: Annotated[
        str, Field(min_length=1, description="The reference id or external id, percent-encoded. Upper and lower case differ.")
    ]


def page_body(page: Page[Any], results: list[Any]) -> dict[str, Any]:
    return {"pageSize": page.size, "totalCount": page.total, "results": results}


def next_page(request: Request, page: Page[Any]) -> tuple[tuple[str, str], ...]:
    """Return the header Link of a numbered page: the address of the next page, with the same query except pageNumber. Empty on
    the last page."""
    pairs = split_pairs(request.scope["query_string"], where="query")
    number = next((int(value) for name, value in reversed(pairs) if value and name.lower() == _NUMBER.lower()), 1)
    return () if page.size * number >= page.total else (_next(request, _NUMBER, str(number + 1)),)


def next_from(request: Request, page: Page[Any], *, start: int) -> tuple[tuple[str, str], ...]:
    """Return the header Link of a page that begins at an index: the address of the next page, with the same query except
    startIndex."""
    following = start + page.size
    return () if following >= page.total else (_next(request, _START, str(following)),)


def next_after(request: Request, place: str) -> tuple[str, str]:
    """Return the header Link of a page that ends at a cursor: the address of the next page, with the same query except `after`."""
    return _next(request, "after", place)


def _next(request: Request, name: str, value: str) -> tuple[str, str]:
    pairs = split_pairs(request.scope["query_string"], where="query")
    rest = [pair for pair in pairs if pair[0].lower() != name.lower()]
    return next_link(f"{quote(request.scope['raw_path'], safe=_IN_PATH)}?{urlencode([*rest, (name, value)])}")


def next_link(address: str) -> tuple[str, str]:
    """Return the header Link of a bare array that has more pages."""
    return "link", f'<{address}>; rel="next"'

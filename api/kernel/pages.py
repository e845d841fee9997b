"""How a caller asks for a part of a list. decisions.md, "Everywhere": size 20 and page 1 by default, below 1 is 400."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from api.kernel.wire import Between, Flag, Integer, Wire
from projections.kernel.page import Page, Window

_FURTHEST = 2**40

Whole = Annotated[Integer, Between(1)]


def _direction(value: Any) -> bool:
    if isinstance(value, str) and value.upper() in ("ASC", "DESC"):
        return value.upper() == "DESC"
    raise PydanticCustomError("order", "must be ASC or DESC")


Descending = Annotated[bool, BeforeValidator(_direction), WithJsonSchema({"type": "string", "enum": ["ASC", "DESC"]})]


class PageQuery(Wire):
    """`order` is ASC or DESC. `noCache` is accepted everywhere: what it asks for is always so, views are never behind."""

    page_size: Whole = 20
    page_number: Whole = 1
    order: Descending = Field(default=False, json_schema_extra={"default": "ASC"})
    no_cache: Flag = False

    @property
    def window(self) -> Window:
        return Window(self.page_size, min(self.page_number, _FURTHEST))


class FreshQuery(Wire):
    """A single read: `noCache` is accepted, and always so."""

    no_cache: Flag = False


class ReferenceQuery(FreshQuery):
    """A look-up by a reference or external id, percent-encoded."""

    id: Annotated[str, Field(min_length=1)]


def page_body(page: Page[Any], results: list[Any]) -> dict[str, Any]:
    return {"pageSize": page.size, "totalCount": page.total, "results": results}

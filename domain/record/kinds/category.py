"""Category: a group of Events. A label is used by one category only; see docs/reference/api/categories.md."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel

from domain.record.record import Record


class CategoryDetails(BaseModel):
    name: str
    label: str
    description: str | None = None


class Category(Record[CategoryDetails]):
    KIND: ClassVar[str] = "category"
    UNIQUE: ClassVar[tuple[str | tuple[str, ...], ...]] = ("label",)

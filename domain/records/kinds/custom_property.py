"""Custom properties: what a broadcaster wants to know of a category or chapter point beyond its fields.

Document 2, "Custom property objects": (category, key) is unique per owner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from pydantic import BaseModel

from domain.kernel.errors import Conflict
from domain.records.record import Record


class PropertyDetails(BaseModel):
    """`owner_id` is the category or chapter point that it belongs to; `category` is a text, not a link."""

    owner_id: UUID
    category: str
    key: str
    value: str | None = None


class CustomProperty(Record):
    """Base of the kinds below."""

    DETAILS: ClassVar[type[BaseModel]] = PropertyDetails
    UNIQUE: ClassVar[tuple[str | tuple[str, ...], ...]] = (("owner_id", "category", "key"),)
    PARENT: ClassVar[str] = "owner_id"

    @classmethod
    def settled(cls, values: Mapping[str, Any], stored: Any) -> Mapping[str, Any]:
        """decisions.md, Custom properties: a known id of another owner is a conflict."""
        if stored is not None and values.get("owner_id", stored.owner_id) != stored.owner_id:
            raise Conflict(f"the property belongs to another {cls.LINKS['owner_id'].replace('_', ' ')}")
        return values


class CategoryProperty(CustomProperty):
    KIND: ClassVar[str] = "category_property"
    LINKS: ClassVar[Mapping[str, str]] = {"owner_id": "category"}


class ChapterPointProperty(CustomProperty):
    KIND: ClassVar[str] = "chapter_point_property"
    LINKS: ClassVar[Mapping[str, str]] = {"owner_id": "chapter_point"}


PROPERTIES: tuple[type[CustomProperty], ...] = (CategoryProperty, ChapterPointProperty)

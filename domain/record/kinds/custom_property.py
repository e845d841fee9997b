"""Custom properties: further values of a category, a chapter point or a destination. Category and key together are unique per
owner.

See docs/reference/api/custom-properties.md#unique-pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic
from uuid import UUID

from pydantic import BaseModel
from typing_extensions import TypeVar

from domain.kernel.errors import Conflict
from domain.record.record import Record


class PropertyDetails(BaseModel):
    """Fields of a property. `owner_id` is the category, chapter point or destination that has the property; `category` is a
    text, not a link."""

    owner_id: UUID
    category: str
    key: str
    value: str | None = None


P = TypeVar("P", bound=PropertyDetails, default=PropertyDetails)
P_co = TypeVar("P_co", bound=PropertyDetails, covariant=True, default=PropertyDetails)


class CustomProperty(Record[P_co], Generic[P_co]):
    """Base class of the properties of each kind of owner."""

    UNIQUE: ClassVar[tuple[str | tuple[str, ...], ...]] = (("owner_id", "category", "key"),)
    PARENT: ClassVar[str] = "owner_id"

    @classmethod
    def prepare_values(cls, values: Mapping[str, Any], stored: PropertyDetails | None) -> Mapping[str, Any]:
        """Refuse to move a property to another owner."""
        if stored is not None and values.get("owner_id", stored.owner_id) != stored.owner_id:
            raise Conflict(f"the property belongs to another {cls.LINKS['owner_id'].replace('_', ' ')}")
        return values


class CategoryProperty(CustomProperty[PropertyDetails]):
    KIND: ClassVar[str] = "category_property"
    LINKS: ClassVar[Mapping[str, str]] = {"owner_id": "category"}


class DestinationPropertyDetails(PropertyDetails):
    """Fields of a destination's property. `client` is the client that wrote it last."""

    client: str = ""


class ChapterPointProperty(CustomProperty[PropertyDetails]):
    KIND: ClassVar[str] = "chapter_point_property"
    LINKS: ClassVar[Mapping[str, str]] = {"owner_id": "chapter_point"}


class DestinationProperty(CustomProperty[DestinationPropertyDetails]):
    KIND: ClassVar[str] = "destination_property"
    LINKS: ClassVar[Mapping[str, str]] = {"owner_id": "destination"}


PROPERTIES: tuple[type[CustomProperty], ...] = (CategoryProperty, ChapterPointProperty, DestinationProperty)

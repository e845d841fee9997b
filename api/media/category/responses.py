"""Response models of categories and of their custom properties."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pydantic import Field

from api.kernel.wire import Wire
from api.media.custom_property import PropertyClone
from domain.records.row import RecordRow


class CategoryProperty(Wire):
    """A property without its owner, as Events and categories show their properties."""

    id: UUID = Field(description="The id of the property.")
    category: str = Field(description="The first half of the pair, which is unique for the owner.")
    key: str = Field(description="The second half of the pair, which is unique for the owner.")
    value: str | None = Field(description="The value; null for none.")

    @classmethod
    def of(cls, row: RecordRow) -> CategoryProperty:
        details = row.details
        return cls.from_values({"id": UUID(row.id), "category": details.category, "key": details.key, "value": details.value})


class CategoryPropertyClone(PropertyClone):
    source_id: UUID = Field(alias="sourceCategoryId", description="The source category.")
    target_id: UUID = Field(alias="targetCategoryId", description="The target category.")
    custom_properties: list[CategoryProperty] = Field(description="The copies in the target.")


class Category(Wire):
    """A category in a response, with its custom properties."""

    id: UUID = Field(description="The id of the category; never changes.")
    name: str = Field(description="The name; not unique.")
    label: str = Field(description="The unique label, which Events show as `category`.")
    description: str | None = Field(description="The description; null when not set.")
    custom_properties: list[CategoryProperty] = Field(description="Its custom properties, by category and key.")

    @classmethod
    def of(cls, row: RecordRow, properties: Sequence[RecordRow] = ()) -> Category:
        details = row.details
        return cls.from_values(
            {
                "id": UUID(row.id),
                "name": details.name,
                "label": details.label,
                "description": details.description,
                "custom_properties": [CategoryProperty.of(row_) for row_ in properties],
            }
        )

"""Requests for categories and their custom properties."""

from __future__ import annotations

from uuid import UUID

from pydantic import ConfigDict, Field

from api.kernel.wire import Name, Text, Wire
from api.media.custom_property import CloneQuery, PropertyQuery, PutPropertyRequest


class UpdateCategoryRequest(Wire):
    model_config = ConfigDict(json_schema_extra={"examples": [{"label": "Latest news"}]})

    name: Name | None = Field(None, description="The name; not blank, not unique. null leaves it unchanged.")
    label: Name | None = Field(None, description="The label; not blank, used by one category only. null leaves it unchanged.")
    description: Text | None = Field(None, description='The description. null or "" clears it.')


class AddCategoryRequest(Wire):
    """A new category. A name or a label is required; the missing one takes the value of the other."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "News", "label": "News", "description": "What happened today"}]}
    )

    name: Name | None = Field(None, description="The name; not blank, not unique. Default: the label.")
    label: Name | None = Field(None, description="The label; not blank, used by one category only. Default: the name.")
    description: Text | None = Field(None, description='The description. null or "": none.')


class PutCategoryPropertyRequest(PutPropertyRequest):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"categoryId": "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "category": "web", "key": "slug", "value": "news"}]
        }
    )

    owner_id: UUID | None = Field(
        None,
        alias="categoryId",
        description="The category that owns the property; required for a new one, unknown is 404. "
        "For a property of another category it is 409.",
    )


class CategoryPropertyQuery(PropertyQuery):
    owner_id: UUID | None = Field(None, alias="categoryId", description="Properties of this category.")


class CategoryPropertyCloneQuery(CloneQuery):
    source_id: UUID = Field(alias="sourceCategoryId", description="The category to copy from; required.")
    target_id: UUID = Field(alias="targetCategoryId", description="The category to copy to; required.")

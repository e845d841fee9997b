"""Categories and their custom properties; see docs/reference/api/categories.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field

from api.http.response import Response, array
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.pages import FreshQuery
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Name, Text, Wire
from api.media.custom_property import CloneQuery, OwnedProperties, PropertyClone, PropertyQuery, PutPropertyRequest, property_routes
from api.media.resource import Resource
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.ports import Outcome
from domain.record.handlers import RecordHandlers
from domain.record.kinds.category import Category as CategoryRecord
from domain.record.kinds.category import CategoryDetails
from domain.record.kinds.custom_property import CategoryProperty as CategoryPropertyRecord
from domain.record.kinds.custom_property import PropertyDetails
from domain.record.ports import RecordReader, RecordRow
from domain.record.property_upserts import pair_of
from domain.record.record import Record
from projections.record.history import RecordHistory
from projections.record.queries import RecordQueries


class CategoryProperty(Wire):
    """A property without its owner, as Events and categories show their properties."""

    id: UUID = Field(description="The id of the property.")
    category: str = Field(description="The first half of the pair, which is unique for the owner.")
    key: str = Field(description="The second half of the pair, which is unique for the owner.")
    value: str | None = Field(description="The value; null for none.")

    @classmethod
    def of(cls, row: RecordRow[PropertyDetails]) -> CategoryProperty:
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
    def of(cls, row: RecordRow[CategoryDetails], properties: Sequence[RecordRow[PropertyDetails]] = ()) -> Category:
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


routes = APIRouter(prefix="/api/category", tags=["Categories"], route_class=MediaRoute)

CATEGORIES = Resource(CategoryRecord, "/api/category", Category.of)


PROPERTIES = OwnedProperties(
    resource=Resource(CategoryPropertyRecord, "/api/category/customproperty", CategoryProperty.of),
    model=CategoryProperty,
    request=PutCategoryPropertyRequest,
    query=CategoryPropertyQuery,
    clone_query=CategoryPropertyCloneQuery,
    clone=CategoryPropertyClone,
)
custom_properties = property_routes(PROPERTIES)


async def category_written(request: Request, outcome: Outcome[Any], history: Service[RecordHistory]) -> Response:
    category = outcome.aggregate
    shown = await with_properties(history.at(outcome.as_of), [RecordRow.of(category)])
    return Response(shown[0], etag=category.version)


@routes.post("/", dependencies=[WRITE], response_model=Category)
@rules(respond=category_written)
async def add_category(request: Request, body: AddCategoryRequest, handlers: Service[RecordHandlers]) -> Outcome[Record]:
    """Add a category. A missing label takes the name, and a missing name the label. Labels are unique."""
    name, label = body.name or body.label, body.label or body.name
    if name is None:
        raise Malformed(*(FieldError(field, "name or label is required") for field in ("name", "label")))
    values = {**CATEGORIES.values(body), "name": name, "label": label}
    return await handlers.register(CategoryRecord, values, unique_field="label", invocation=request.invocation)


@routes.put("/{id}", dependencies=[WRITE], response_model=Category)
@rules(respond=category_written)
async def update_category(
    request: Request, id: UUID, body: UpdateCategoryRequest, handlers: Service[RecordHandlers]
) -> Outcome[Record]:
    """Change a category's name, label or description. Absent fields keep their values."""
    values = CATEGORIES.values(body)
    return await handlers.amend(CategoryRecord, id, values=values, unique_field="label", invocation=request.invocation)


async def category_deleted(request: Request, outcome: Outcome[Record]) -> Response:
    *owned, category = outcome.aggregates
    properties = sorted(map(RecordRow.of, owned), key=pair_of)
    return Response(Category.of(RecordRow.of(category), properties), etag=category.version)


@routes.delete("/{id}", dependencies=[WRITE], response_model=Category)
@rules(respond=category_deleted)
async def delete_category(request: Request, id: UUID, handlers: Service[RecordHandlers]) -> Outcome[Record]:
    """Delete a category that no Event uses, with its properties. The response shows its last state."""
    return await handlers.delete_with_properties(
        CategoryRecord, id, properties=CategoryPropertyRecord, invocation=request.invocation
    )


@routes.get("/", dependencies=[READ], response_model=list[Category])
async def list_categories(
    request: Request, query: Annotated[FreshQuery, Query()], records: Service[RecordQueries], history: Service[RecordHistory]
) -> Response:
    """All categories, by name."""
    reader = history.at(None)
    return await array(await with_properties(reader, part) async for part in records.parts(CategoryRecord))


@routes.get("/{id}", dependencies=[READ], response_model=Category, name="get_category")
async def category_by_id(
    request: Request,
    id: UUID,
    query: Annotated[FreshQuery, Query()],
    records: Service[RecordQueries],
    history: Service[RecordHistory],
) -> Response:
    """The category with this id."""
    row = await records.require(CategoryRecord, id)
    return Response((await with_properties(history.at(None), [row]))[0], etag=row.version)


async def with_properties(reader: RecordReader, rows: Sequence[RecordRow[CategoryDetails]]) -> list[Category]:
    owned = await reader.of_owners(CategoryPropertyRecord, [row.id for row in rows])
    return [Category.of(row, owned.get(row.id, ())) for row in rows]

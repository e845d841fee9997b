"""Categories and their custom properties; see docs/reference/api/categories.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from api.http.arrays import array
from api.http.response import Response
from api.http.router import Router
from api.kernel.auth import READ, WRITE
from api.kernel.pages import FreshQuery
from api.kernel.request import Request
from api.kernel.surfaces import MEDIA
from api.media.category.requests import (
    AddCategoryRequest,
    CategoryPropertyCloneQuery,
    CategoryPropertyQuery,
    PutCategoryPropertyRequest,
    UpdateCategoryRequest,
)
from api.media.category.responses import Category, CategoryProperty, CategoryPropertyClone
from api.media.custom_property import OwnedProperties, property_routes
from api.media.resource import Resource
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.ports import Outcome
from domain.records.handlers import RecordHandlers
from domain.records.kinds.category import Category as CategoryRecord
from domain.records.kinds.custom_property import CategoryProperty as CategoryPropertyRecord
from domain.records.ports import RecordReader
from domain.records.property_upserts import pair_of
from domain.records.record import Record
from domain.records.row import RecordRow
from projections.records.history import RecordHistory
from projections.records.queries import RecordQueries

routes = Router("/category", tag="Categories", surface=MEDIA)

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


async def category_written(request: Request, outcome: Outcome[Any], history: RecordHistory) -> Response:
    category = outcome.aggregate
    shown = await with_properties(history.at(outcome.as_of), [RecordRow.of(category)])
    return Response(200, shown[0], etag=category.version)


@routes.post("/", WRITE, response_model=Category, respond=category_written)
async def add_category(request: Request, body: AddCategoryRequest, handlers: RecordHandlers) -> Outcome[Record]:
    """Add a category. A missing label takes the name, and a missing name the label. Labels are unique."""
    name, label = body.name or body.label, body.label or body.name
    if name is None:
        raise Malformed(*(FieldError(field, "name or label is required") for field in ("name", "label")))
    values = {**CATEGORIES.values(body), "name": name, "label": label}
    return await handlers.register(CategoryRecord, values, unique_field="label", invocation=request.invocation)


@routes.put("/{id}", WRITE, response_model=Category, respond=category_written)
async def update_category(request: Request, id: UUID, body: UpdateCategoryRequest, handlers: RecordHandlers) -> Outcome[Record]:
    """Change a category's name, label or description. Absent fields keep their values."""
    values = CATEGORIES.values(body)
    return await handlers.amend(CategoryRecord, id, values=values, unique_field="label", invocation=request.invocation)


async def category_deleted(request: Request, outcome: Outcome[Record]) -> Response:
    *owned, category = outcome.aggregates
    properties = sorted(map(RecordRow.of, owned), key=pair_of)
    return Response(200, Category.of(RecordRow.of(category), properties), etag=category.version)


@routes.delete("/{id}", WRITE, response_model=Category, respond=category_deleted)
async def delete_category(request: Request, id: UUID, handlers: RecordHandlers) -> Outcome[Record]:
    """Delete a category that no Event uses, with its properties. The response shows its last state."""
    return await handlers.delete_with_properties(
        CategoryRecord, id, properties=CategoryPropertyRecord, invocation=request.invocation
    )


@routes.get("/", READ, response_model=list[Category])
async def list_categories(request: Request, query: FreshQuery, records: RecordQueries, history: RecordHistory) -> Response:
    """All categories, by name."""
    reader = history.at(None)
    return await array(await with_properties(reader, part) async for part in records.parts(CategoryRecord.KIND))


@routes.get("/{id}", READ, response_model=Category, name="get_category")
async def category_by_id(request: Request, id: UUID, query: FreshQuery, records: RecordQueries, history: RecordHistory) -> Response:
    """The category with this id."""
    row = await records.require(CategoryRecord.KIND, id)
    return Response(200, (await with_properties(history.at(None), [row]))[0], etag=row.version)


async def with_properties(reader: RecordReader, rows: Sequence[RecordRow]) -> list[Category]:
    owned = await reader.of_owners(CategoryPropertyRecord.KIND, [row.id for row in rows])
    return [Category.of(row, owned.get(row.id, ())) for row in rows]

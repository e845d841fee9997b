"""Categories: decisions.md, "Records the documents only name". Their properties: document 2, "Category custom properties"."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from api.kernel.answer import Answer
from api.kernel.auth import READ, WRITE
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.pages import FreshQuery
from api.kernel.routes import Routes
from api.kernel.wire import Name, Text, Wire
from api.media.category.shape import category_object, property_object
from api.media.custom_property import PropertyOwner, property_routes
from api.media.resource import Resource
from api.media.standard import StandardRoutes
from domain.kernel.errors import FieldError, Malformed
from domain.records.kinds.category import Category
from domain.records.kinds.custom_property import CategoryProperty
from domain.records.record import Record, WithdrawRecord
from projections.custom_property.queries import PropertyQueries
from projections.log.ledger import Plan
from projections.records.queries import RecordQueries, RecordRow

routes = Routes("/category", tag="Categories")


class CategoryBody(Wire):
    name: Name | None = None
    label: Name | None = None
    description: Text | None = None


class CategoryPropertyWire(Wire):
    """Document 2, "Category custom property"."""

    id: UUID
    category: str
    key: str
    value: str | None


class CategoryWire(Wire):
    id: UUID
    name: str
    label: str
    description: str | None
    custom_properties: list[CategoryPropertyWire]


CATEGORIES = Resource(Category, "/api/category", partial(category_object, properties=()))
"""Without properties; they are added by whoever shows a category."""
StandardRoutes(routes, CATEGORIES, CategoryWire).events()

PROPERTIES = PropertyOwner(
    CategoryProperty,
    "/category/customproperty",
    property_object,
    CategoryPropertyWire,
    owner_id="categoryId",
    source_id="sourceCategoryId",
    target_id="targetCategoryId",
)
custom_properties = property_routes(PROPERTIES)


@routes.post("/", WRITE, answers=CategoryWire)
async def add_category(call: Call, body: CategoryBody, bus: CommandBus, properties: PropertyQueries) -> Answer:
    """Add a category. A missing label takes the name, and the reverse; a label is used once."""
    name, label = body.name or body.label, body.label or body.name
    if name is None:
        raise Malformed(*(FieldError(field, "is required, or the other one") for field in ("name", "label")))
    command = CATEGORIES.add(body, name=name, label=label)
    return await bus.send(call, command, partial(_written, properties), taken="label")


@routes.put("/{id}", WRITE, answers=CategoryWire)
async def amend_category(call: Call, id: UUID, body: CategoryBody, bus: CommandBus, properties: PropertyQueries) -> Answer:
    """Change a category's name, label or description."""
    return await bus.send(call, CATEGORIES.amend(id, body), partial(_written, properties), taken="label")


@routes.delete("/{id}", WRITE, answers=CategoryWire)
async def withdraw_category(call: Call, id: UUID, bus: CommandBus, properties: PropertyQueries) -> Answer:
    """Delete a category that no Event uses, with its properties; the answer is the category as it last was."""

    async def plan() -> Plan[Record]:
        belongings = await properties.of_owner(CategoryProperty.KIND, id)
        return Plan(CATEGORIES.withdraw(id), [WithdrawRecord(row.id, CategoryProperty, still={}) for row in belongings])

    return await bus.send(call, plan, partial(_written, properties))


@routes.get("/", READ, answers=list[CategoryWire])
async def list_categories(call: Call, query: FreshQuery, records: RecordQueries, properties: PropertyQueries) -> Answer:
    """All categories, by name."""
    return Answer(200, await _shown(properties, await records.all(Category.KIND)))


@routes.get("/{id}", READ, answers=CategoryWire)
async def category_by_id(call: Call, id: UUID, query: FreshQuery, records: RecordQueries, properties: PropertyQueries) -> Answer:
    """One category."""
    found = await records.known(Category.KIND, id)
    return Answer(200, (await _shown(properties, [found]))[0], etag=found.version)


async def _written(properties: PropertyQueries, category: Record) -> Answer:
    return Answer(200, (await _shown(properties, [RecordRow.of(category)]))[0], etag=category.version)


async def _shown(properties: PropertyQueries, rows: list[RecordRow]) -> list[dict[str, Any]]:
    owned = await properties.of_owners(CategoryProperty.KIND, [row.id for row in rows])
    return [category_object(row, owned.get(row.id, ())) for row in rows]

"""Custom properties of destinations: docs/reference/api/destinations.md#properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import ConfigDict, Field

from api.audit.past_states import Renderer
from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Text, Wire
from api.media.custom_property import DeletedCount, PropertyEntry, PropertyName, change_of, respond_count
from api.media.resource import Resource
from domain.destination.handlers import DestinationPropertyHandlers
from domain.kernel.ports import Outcome
from domain.record.kinds.custom_property import DestinationProperty as PropertyKind
from domain.record.kinds.custom_property import DestinationPropertyDetails
from domain.record.ports import PropertyFilter, RecordRow
from domain.record.record import Record
from projections.custom_property.queries import PropertyQueries

routes = APIRouter(prefix="/api/media/destinationproperty", tags=["Destination properties"], route_class=MediaRoute)


class PutDestinationPropertyRequest(PropertyEntry):
    """A property of a destination."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"destinationId": "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "category": "web", "key": "slug", "value": "news"}
            ]
        }
    )

    id: UUID | None = Field(
        None,
        description="The property to change; unknown is 404. Absent or null: the property of the destination with this category "
        "and key is changed, or a new property is added.",
    )
    destination_id: UUID | None = Field(
        None, description="The destination that owns the property; required for a new one, unknown is 404."
    )


class DestinationProperty(Wire):
    """A property of a destination in a response."""

    id: UUID = Field(description="The id of the property.")
    destination_id: UUID = Field(description="The destination that owns it.")
    category: str = Field(description="The first half of the pair, which is unique for the destination.")
    key: str = Field(description="The second half of the pair, which is unique for the destination.")
    value: str | None = Field(description="The value; null for none.")
    client: str = Field(description="The client that last wrote it.")

    @classmethod
    def of(cls, row: RecordRow[DestinationPropertyDetails]) -> DestinationProperty:
        details = row.details
        return cls.model_construct(
            id=UUID(row.id),
            destination_id=details.owner_id,
            category=details.category,
            key=details.key,
            value=details.value,
            client=details.client,
        )


class PairQuery(Wire):
    """The category and key of a property of a destination."""

    category: PropertyName = Field(description="The category of the property; required.")
    key: PropertyName = Field(description="The key of the property; required.")


class FilterQuery(Wire):
    """Filters by whole and exact values. An empty value matches only the empty text; an absent filter matches everything."""

    EMPTY_IS_SENT = True

    category: Text | None = Field(None, description="Properties with exactly this category.")
    key: Text | None = Field(None, description="Properties with exactly this key.")
    value: Text | None = Field(None, description="Properties with exactly this value.")

    def filter(self, destination: UUID) -> PropertyFilter:
        return PropertyFilter(owner_id=str(destination), category=self.category, key=self.key, value=self.value)


PROPERTIES = Resource(PropertyKind, "/api/media/destinationproperty", DestinationProperty.of)


@routes.post("/", dependencies=[WRITE], response_model=DestinationProperty)
@rules(absent=404, respond=PROPERTIES.respond)
async def put_destination_property(
    request: Request, body: PutDestinationPropertyRequest, handlers: Service[DestinationPropertyHandlers]
) -> Outcome[Record]:
    """Add a property, or change the one with this id or, without an id, with this category and key."""
    return await handlers.put(change_of(body), destination=body.destination_id, invocation=request.invocation)


@routes.get("/all/{destinationId}", dependencies=[READ], response_model=list[DestinationProperty])
@rules(absent="never")
async def list_destination_properties(
    request: Request,
    destination_id: Annotated[UUID, Path(alias="destinationId")],
    query: Annotated[FilterQuery, Query()],
    properties: Service[PropertyQueries],
) -> Response:
    """The properties of a destination that match every filter."""
    return PROPERTIES.listed(await properties.listed(PropertyKind, query.filter(destination_id)))


@routes.get("/id/{id}", dependencies=[READ], response_model=DestinationProperty, name="get_destination_property")
async def destination_property_by_id(request: Request, id: UUID, properties: Service[PropertyQueries]) -> Response:
    """The property with this id."""
    return PROPERTIES.single(await properties.find(PropertyKind, id), id)


@routes.get("/{destinationId}", dependencies=[READ], response_model=DestinationProperty, name="get_destination_property_by_pair")
async def destination_property_by_pair(
    request: Request,
    destination_id: Annotated[UUID, Path(alias="destinationId")],
    query: Annotated[PairQuery, Query()],
    properties: Service[PropertyQueries],
) -> Response:
    """The property of a destination with this category and key."""
    selection = PropertyFilter(owner_id=str(destination_id), category=query.category, key=query.key)
    rows = await properties.listed(PropertyKind, selection)
    return PROPERTIES.single(rows[0] if rows else None, destination_id)


@routes.delete("/{destinationId}", dependencies=[WRITE], response_model=DestinationProperty)
@rules(respond=PROPERTIES.respond)
async def delete_destination_property(
    request: Request,
    destination_id: Annotated[UUID, Path(alias="destinationId")],
    query: Annotated[PairQuery, Query()],
    handlers: Service[DestinationPropertyHandlers],
) -> Outcome[Record]:
    """Delete the property of a destination with this category and key. The response shows its last state."""
    return await handlers.delete_pair(destination_id, category=query.category, key=query.key, invocation=request.invocation)


@routes.delete("/all/{destinationId}", dependencies=[WRITE], response_model=DeletedCount)
@rules(absent=404, if_match=False, respond=respond_count)
async def delete_destination_properties(
    request: Request,
    destination_id: Annotated[UUID, Path(alias="destinationId")],
    query: Annotated[FilterQuery, Query()],
    handlers: Service[DestinationPropertyHandlers],
) -> Outcome[Record]:
    """Delete the properties of a destination that match every filter; without a filter, all."""
    return await handlers.delete_matching(query.filter(destination_id), invocation=request.invocation)


def past_states() -> Mapping[str, Renderer]:
    return {PropertyKind.KIND: PROPERTIES.past_state}

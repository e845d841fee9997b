"""Custom properties; see docs/reference/api/custom-properties.md. The routes are declared once for all kinds of owners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import GenericAlias
from typing import Annotated, Any, Final, Generic
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field, StringConstraints

from api.http.response import Response
from api.http.routing import Service, declared, rules
from api.kernel.auth import READ, WRITE
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Flag, Text, Wire
from api.media.resource import Resource
from domain.kernel.ports import Outcome
from domain.record.kinds.custom_property import CustomProperty, P
from domain.record.ports import PropertyFilter, RecordRow
from domain.record.property_handlers import PropertyHandlers
from domain.record.property_upserts import PropertyChange
from domain.record.record import Record
from projections.custom_property.queries import PropertyQueries
from projections.log.executor import CommandExecutor

MAX_PROPERTIES: Final = 1000
"""Number of properties in one request."""
_NOT_STORED: Final = (("cache-control", "no-store"),)

PropertyName = Annotated[Text, StringConstraints(max_length=300)]
"""A category or key. Two of them and the owner's id fit one index entry. The empty text is valid too."""
_VALUE: Final = "The value. null: no value. Absent: unchanged; no value for a new property."


class NamedProperty(Wire):
    """A property by its category and key."""

    category: PropertyName = Field(description="The first half of the pair, which is unique for the owner; required.")
    key: PropertyName = Field(description="The second half of the pair; required.")
    value: Text | None = Field(None, description=_VALUE)


class PropertyEntry(Wire):
    """A change of a property. With an existing id, absent fields stay unchanged; otherwise category and key are required."""

    id: UUID | None = Field(
        None,
        description="The property to change; unknown: a new one with this id. Absent or null: the property with this category "
        "and key "
        "is changed, or a new one added.",
    )
    category: PropertyName | None = Field(
        None,
        description="The first half of the pair, which is unique for the owner; required for a new property. null leaves it "
        "unchanged.",
    )
    key: PropertyName | None = Field(
        None,
        description="The second half of that pair; required for a new property. null leaves it unchanged.",
    )
    value: Text | None = Field(None, description=_VALUE)


class PutPropertyRequest(PropertyEntry):
    id: UUID | None = Field(
        None,
        description="The property to change; unknown is 404. Absent or null: the property of the owner with this category and key "
        "is changed, or a new one added.",
    )
    owner_id: UUID | None = None


class PropertyQuery(Wire):
    """Filters by whole and exact values. An empty value matches only the empty text."""

    EMPTY_IS_SENT = True

    owner_id: UUID | None = None
    category: Text | None = Field(None, description="Properties with exactly this category; empty matches the empty text.")
    key: Text | None = Field(None, description="Properties with exactly this key; empty matches the empty text.")
    value: Text | None = Field(None, description="Properties with exactly this value; empty matches the empty text.")

    @property
    def filter(self) -> PropertyFilter:
        owner = None if self.owner_id is None else str(self.owner_id)
        return PropertyFilter(owner_id=owner, category=self.category, key=self.key, value=self.value)


class CloneQuery(Wire):
    source_id: UUID
    target_id: UUID
    remove_source: Flag = Field(False, description="true: delete the properties of the source. Default false.")


class PropertyClone(Wire):
    source_id: UUID
    target_id: UUID
    remove_source: bool = Field(description="True if the properties of the source were deleted.")
    custom_properties: Sequence[Any]


class DeletedCount(Wire):
    deleted_count: int = Field(description="Number of deleted records.")


PropertyEntries = Annotated[
    list[PropertyEntry],
    Field(
        max_length=MAX_PROPERTIES,
        examples=[
            [{"category": "web", "key": "slug", "value": "news"}, {"category": "web", "key": "lang", "value": "en"}],
        ],
    ),
]


@dataclass(frozen=True, kw_only=True)
class OwnedProperties(Generic[P]):
    """The properties of one kind of owner: their resource and models. The owner's id has its own name in each of them."""

    resource: Resource[P]
    model: type[Wire]
    request: type[PutPropertyRequest]
    query: type[PropertyQuery]
    clone_query: type[CloneQuery]
    clone: type[PropertyClone]

    @property
    def kind(self) -> type[CustomProperty[P]]:
        assert issubclass(self.resource.kind, CustomProperty)
        return self.resource.kind

    @property
    def owner_field(self) -> str:
        return self.request.model_fields["owner_id"].alias or "ownerId"

    @property
    def list_model(self) -> Any:
        return GenericAlias(list, (self.model,))

    async def respond_all(self, request: Request, outcome: Outcome[Record[P]]) -> Response:
        """Return the property of each entry, in the order of the entries."""
        return self.resource.listed(RecordRow.of(outcome.aggregates[place]) for place in outcome.result["places"])

    async def respond_cloned(self, request: Request, outcome: Outcome[Record[P]]) -> Response:
        result = outcome.result
        copies = [self.resource.shape(RecordRow.of(copy)) for copy in outcome.aggregates[: result["copied"]]]
        body = self.clone.model_construct(
            source_id=UUID(result["source"]),
            target_id=UUID(result["target"]),
            remove_source=result["move"],
            custom_properties=copies,
        )
        return Response(body, headers=_NOT_STORED)


async def respond_count(request: Request, outcome: Outcome[Record]) -> Response:
    return Response(DeletedCount.model_construct(deleted_count=outcome.result["deleted"]))


def change_of(entry: PropertyEntry, *, where: str = "") -> PropertyChange:
    """Return the change. A category or key that is null counts as absent; a value may be null."""
    sent = {name: getattr(entry, name) for name in entry.model_fields_set & {"category", "key", "value"}}
    return PropertyChange(entry.id, {name: value for name, value in sent.items() if value is not None or name == "value"}, where)


def property_routes(of: OwnedProperties) -> APIRouter:
    """Return the routes that the properties of every kind of owner have."""
    owner = of.kind.LINKS["owner_id"].replace("_", " ").capitalize()
    router = APIRouter(prefix=of.resource.path, tags=[f"{owner} custom properties"], route_class=MediaRoute)
    _declare_writes(router, of)
    _declare_clone(router, of)
    _declare_routes_by_id(router, of)
    _declare_routes_by_filter(router, of)
    return router


def _declare_writes(router: APIRouter, of: OwnedProperties) -> None:
    kind = of.kind

    @router.post("/", dependencies=[WRITE], response_model=of.model, name=f"put_{kind.KIND}")
    @rules(absent=404, respond=of.resource.respond)
    @declared(body=of.request)
    async def put_property(request: Request, body: PutPropertyRequest, handlers: Service[PropertyHandlers]) -> Outcome[Record]:
        """Add a property, or change the one with this id or, without an id, with this category and key."""
        return await handlers.add_or_change(
            kind, change_of(body), owner=body.owner_id, owner_field=of.owner_field, invocation=request.invocation
        )

    @router.post("/bulk/{id}", dependencies=[WRITE], response_model=of.list_model, name=f"put_{kind.KIND}_list")
    @rules(if_match=False, respond=of.respond_all)
    async def put_properties(
        request: Request, id: UUID, body: PropertyEntries, handlers: Service[PropertyHandlers]
    ) -> Outcome[Record]:
        """Add or change up to 1000 properties of one owner, all or none.

        Nothing is removed. If entries have the same id, or the same category and key, the last one counts.
        """
        changes = [change_of(entry, where=f"[{index}].") for index, entry in enumerate(body)]
        return await handlers.add_or_change_all(kind, id, changes=changes, invocation=request.invocation)


def _declare_clone(router: APIRouter, of: OwnedProperties) -> None:
    @router.get("/clone/", dependencies=[WRITE], response_model=of.clone, name=f"clone_{of.kind.KIND}_list")
    @rules(absent=404, respond=of.respond_cloned)
    @declared(query=Annotated[of.clone_query, Query()])
    async def clone_properties(
        request: Request, query: Annotated[CloneQuery, Query()], handlers: Service[PropertyHandlers]
    ) -> Outcome[Record]:
        """Copy all properties of one owner to another; with removeSource, move them.

        This call writes: a property of the target with the same category and key takes the source's value.
        """
        return await handlers.copy(
            of.kind, query.source_id, target=query.target_id, move=query.remove_source, invocation=request.invocation
        )


def _declare_routes_by_id(router: APIRouter, of: OwnedProperties) -> None:
    @router.get("/{id}", dependencies=[READ], response_model=of.model, name=f"get_{of.kind.KIND}")
    async def property_by_id(request: Request, id: UUID, properties: Service[PropertyQueries]) -> Response:
        """The property with this id."""
        return of.resource.single(await properties.find(of.kind, id), id)

    @router.delete("/{id}", dependencies=[WRITE], response_model=of.model, name=f"delete_{of.kind.KIND}")
    @rules(respond=of.resource.respond)
    async def delete_property(request: Request, id: UUID, executor: Service[CommandExecutor]) -> Outcome[Record]:
        """Delete a property. The response shows its last state."""
        return await executor.execute(of.kind.delete.on(id), invocation=request.invocation)


def _declare_routes_by_filter(router: APIRouter, of: OwnedProperties) -> None:
    @router.get("/", dependencies=[READ], response_model=of.list_model, name=f"list_{of.kind.KIND}")
    @declared(query=Annotated[of.query, Query()])
    async def list_properties(
        request: Request, query: Annotated[PropertyQuery, Query()], properties: Service[PropertyQueries]
    ) -> Response:
        """The properties that match every filter; without a filter, all."""
        return of.resource.listed(await properties.listed(of.kind, query.filter))

    @router.delete("/", dependencies=[WRITE], response_model=DeletedCount, name=f"delete_{of.kind.KIND}_list")
    @rules(if_match=False, respond=respond_count)
    @declared(query=Annotated[of.query, Query()])
    async def delete_properties(
        request: Request, query: Annotated[PropertyQuery, Query()], handlers: Service[PropertyHandlers]
    ) -> Outcome[Record]:
        """Delete the properties that match every filter. At least one filter is required."""
        return await handlers.delete_matching(of.kind, query.filter, owner_field=of.owner_field, invocation=request.invocation)

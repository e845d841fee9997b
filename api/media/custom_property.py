"""Custom properties, the same for every kind of owner: document 2, "Category custom properties" and "Chapter point custom
properties"; decisions.md, "Custom properties". An owner brings its names; the handlers are written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import GenericAlias
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import Field, StringConstraints, create_model

from api.kernel.answer import Answer
from api.kernel.auth import READ, WRITE
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.routes import Routes, reading
from api.kernel.wire import Flag, Text, Wire
from api.media.property_upserts import Upserts, Wanted, found_pair, pair_of, upserts
from api.media.resource import Resource, Shape
from domain.kernel.command import Command
from domain.kernel.errors import FieldError, Malformed, NotFound, Refused
from domain.kernel.ids import new_id
from domain.records.kinds.custom_property import CustomProperty
from domain.records.record import AmendRecord, Record, RegisterRecord, WithdrawRecord
from projections.custom_property.queries import PropertyFilter, PropertyQueries
from projections.log.ledger import Plan
from projections.records.queries import RecordQueries, RecordRow

MOST: Final = 1000
MOST_AT_ONCE: Final = 5000
_NOT_STORED: Final = (("cache-control", "no-store"),)

PropertyName = Annotated[Text, StringConstraints(max_length=300)]
"""A category or key: two of them and the owner's id fit one index entry. The empty text is a name too."""


class PropertyModel(Wire):
    """A property by its category and key."""

    category: PropertyName
    key: PropertyName
    value: Text | None = None


class PropertyEntry(Wire):
    """With the id of a property that exists, absent fields stay; without one category and key are required."""

    id: UUID | None = None
    category: PropertyName | None = None
    key: PropertyName | None = None
    value: Text | None = None


class PropertyBody(PropertyEntry):
    owner_id: UUID | None = None


class PropertyQuery(Wire):
    """Whole and exact values; an empty one finds only what is empty."""

    owner_id: UUID | None = None
    category: Text | None = None
    key: Text | None = None
    value: Text | None = None

    @property
    def filter(self) -> PropertyFilter:
        owner = None if self.owner_id is None else str(self.owner_id)
        return PropertyFilter(owner_id=owner, category=self.category, key=self.key, value=self.value)


class CloneQuery(Wire):
    source_id: UUID
    target_id: UUID
    remove_source: Flag = False


class DeletedCountWire(Wire):
    deleted_count: int


Bulk = Annotated[list[PropertyEntry], Field(max_length=MOST)]


@dataclass(frozen=True)
class PropertyOwner:
    """What is peculiar to the properties of one kind of owner: their object, and the names of the owner's ids on the wire."""

    kind: type[CustomProperty]
    path: str
    shape: Shape
    answers: type[Wire]
    owner_id: str
    source_id: str
    target_id: str
    body: type[PropertyBody] = PropertyBody

    @property
    def owner(self) -> str:
        return self.kind.LINKS["owner_id"]

    @property
    def title(self) -> str:
        return self.owner.replace("_", " ").capitalize()

    @property
    def list_of_answers(self) -> Any:
        return GenericAlias(list, (self.answers,))

    @property
    def resource(self) -> Resource:
        return Resource(self.kind, f"/api{self.path}", self.shape)


class PropertyWrites:
    """Adds, changes, copies and removes properties of any owner."""

    def __init__(self, bus: CommandBus, records: RecordQueries, properties: PropertyQueries) -> None:
        self._bus = bus
        self._records = records
        self._properties = properties

    async def put(self, call: Call, of: PropertyOwner, body: PropertyBody) -> Answer:
        async def plan() -> Plan[Record]:
            return Plan((await self._upsert(of, body)).commands[0])

        return await self._bus.send(call, plan, of.resource.written)

    async def _upsert(self, of: PropertyOwner, body: PropertyBody) -> Upserts:
        """decisions.md, "Everywhere": a single property's unknown id is 404."""
        found = None
        if body.id is not None:
            found = await self._properties.find(of.kind.KIND, body.id)
            if found is None:
                raise NotFound(of.kind.KIND, str(body.id))
        wanted = Wanted(body.id, _values(body))
        category, key = wanted.pair({} if found is None else {UUID(found.id): found})
        owner = body.owner_id or (found.details.owner_id if found is not None else None)
        if owner is None:
            raise Malformed.at(of.owner_id, "is required")
        await self._records.known(of.owner, owner)
        twins = await self._properties.matching(of.kind.KIND, PropertyFilter(owner_id=str(owner), category=category, key=key))
        return upserts(of.kind, owner, wanted=[wanted], stored=twins if found is None else [*twins, found])

    async def put_all(self, call: Call, of: PropertyOwner, owner: UUID, entries: Sequence[PropertyEntry], /) -> Answer:
        places: Sequence[int] = ()

        async def plan() -> Sequence[Command[Any]]:
            nonlocal places
            wanted = [Wanted(one.id, _values(one), f"[{index}].") for index, one in enumerate(entries)]
            made = upserts(of.kind, owner, wanted=wanted, stored=await self._properties.of_owner(of.kind.KIND, owner))
            await self._records.known(of.owner, owner)
            places = made.places
            return made.commands

        async def show(properties: Sequence[Record]) -> Answer:
            return of.resource.listed(RecordRow.of(properties[place]) for place in places)

        return await self._bus.send_all(call, plan, show)

    async def clone(self, call: Call, of: PropertyOwner, query: CloneQuery) -> Answer:
        copies = 0

        async def plan() -> Sequence[Command[Any]]:
            nonlocal copies
            await self._records.known(of.owner, query.source_id)
            await self._records.known(of.owner, query.target_id)
            source = _not_too_many(await self._properties.of_owner(of.kind.KIND, query.source_id))
            copies = len(source)
            if query.source_id == query.target_id:
                return [AmendRecord(row.id, of.kind, {}, still={}) for row in source]
            target = {pair_of(row): row for row in await self._properties.of_owner(of.kind.KIND, query.target_id)}
            removed = source if query.remove_source else ()
            return [
                *(_copy(row, target.get(pair_of(row)), of.kind, query.target_id) for row in source),
                *(WithdrawRecord(row.id, of.kind, still={**found_pair(row), "value": row.details.value}) for row in removed),
            ]

        async def show(properties: Sequence[Record]) -> Answer:
            body = {
                of.source_id: query.source_id,
                of.target_id: query.target_id,
                "removeSource": query.remove_source,
                "customProperties": [of.shape(RecordRow.of(one)) for one in properties[:copies]],
            }
            return Answer(200, body, headers=_NOT_STORED)

        return await self._bus.send_all(call, plan, show)

    async def remove(self, call: Call, of: PropertyOwner, wanted: PropertyFilter) -> Answer:
        if wanted.empty:
            raise Malformed(
                *(FieldError(name, "or another filter is required") for name in (of.owner_id, "category", "key", "value"))
            )
        given = {name: value for name in ("category", "key", "value") if (value := getattr(wanted, name)) is not None}

        async def plan() -> Sequence[Command[Any]]:
            found = _not_too_many(await self._properties.matching(of.kind.KIND, wanted))
            return [WithdrawRecord(row.id, of.kind, still=given) for row in found]

        async def show(properties: Sequence[Record]) -> Answer:
            return Answer(200, {"deletedCount": len(properties)})

        return await self._bus.send_all(call, plan, show)


def _values(entry: PropertyEntry) -> dict[str, str | None]:
    """What is to be set. A category or key that is null is as good as absent; a value may be null."""
    sent = {name: getattr(entry, name) for name in entry.model_fields_set & {"category", "key", "value"}}
    return {name: value for name, value in sent.items() if value is not None or name == "value"}


def _not_too_many(rows: list[RecordRow]) -> list[RecordRow]:
    """All of them are one decision and one append, which holds up others meanwhile."""
    if len(rows) > MOST_AT_ONCE:
        raise Refused(f"that are {len(rows)} properties; at most {MOST_AT_ONCE} are copied or deleted at once")
    return rows


def _copy(row: RecordRow, twin: RecordRow | None, kind: type[CustomProperty], target: UUID, /) -> Command[Any]:
    value = row.details.value
    if twin is not None:
        return AmendRecord(twin.id, kind, {"value": value}, still=found_pair(twin))
    return RegisterRecord(new_id(), kind, {**found_pair(row), "owner_id": target, "value": value}, new=True)


def property_routes(of: PropertyOwner) -> Routes:
    """All routes that every kind of owner has."""
    routes = Routes(of.path, tag=f"{of.title} custom properties")
    _write_routes(routes, of)
    _clone_route(routes, of)
    _routes_by_id(routes, of)
    _routes_by_filter(routes, of)
    return routes


def _write_routes(routes: Routes, of: PropertyOwner) -> None:
    model = create_model(f"{of.kind.__name__}Body", __base__=of.body, owner_id=_optional_id(of.owner_id))

    @routes.post("/", WRITE, answers=of.answers, name=f"put_{of.kind.KIND}")
    @reading(body=model)
    async def put_property(call: Call, body: PropertyBody, writes: PropertyWrites) -> Answer:
        """Add a property, or change the one with this id or, without an id, with this category and key."""
        return await writes.put(call, of, body)

    @routes.post("/bulk/{id}", WRITE, answers=of.list_of_answers, name=f"put_{of.kind.KIND}_list")
    async def put_properties(call: Call, id: UUID, body: Bulk, writes: PropertyWrites) -> Answer:
        """Add or change up to 1000 properties of one owner, all or nothing. Nothing is removed; the last of twins wins."""
        return await writes.put_all(call, of, id, body)


def _clone_route(routes: Routes, of: PropertyOwner) -> None:
    ids: dict[str, Any] = {
        name: (UUID, Field(alias=alias)) for name, alias in (("source_id", of.source_id), ("target_id", of.target_id))
    }
    model = create_model(f"{of.kind.__name__}CloneQuery", __base__=CloneQuery, **ids)
    rest: dict[str, Any] = {"remove_source": (bool, ...), "custom_properties": (of.list_of_answers, ...)}
    answers = create_model(f"{of.kind.__name__}CloneWire", __base__=Wire, **ids, **rest)

    @routes.get("/clone/", WRITE, answers=answers, name=f"clone_{of.kind.KIND}_list")
    @reading(query=model)
    async def clone_properties(call: Call, query: CloneQuery, writes: PropertyWrites) -> Answer:
        """Copy all properties of one owner to another; with removeSource, move them.

        This writes: a property of the target with the same category and key takes the source's value."""
        return await writes.clone(call, of, query)


def _routes_by_id(routes: Routes, of: PropertyOwner) -> None:
    @routes.get("/{id}", READ, answers=of.answers, name=f"{of.kind.KIND}_by_id")
    async def property_by_id(call: Call, id: UUID, properties: PropertyQueries) -> Answer:
        """One property."""
        return of.resource.found(await properties.find(of.kind.KIND, id), id)

    @routes.delete("/{id}", WRITE, answers=of.answers, name=f"withdraw_{of.kind.KIND}")
    async def withdraw_property(call: Call, id: UUID, bus: CommandBus) -> Answer:
        """Delete a property; the answer is the property as it last was."""
        return await bus.send(call, of.resource.withdraw(id), of.resource.written)


def _routes_by_filter(routes: Routes, of: PropertyOwner) -> None:
    model = create_model(f"{of.kind.__name__}Query", __base__=PropertyQuery, owner_id=_optional_id(of.owner_id))

    @routes.get("/", READ, answers=of.list_of_answers, name=f"list_{of.kind.KIND}")
    @reading(query=model)
    async def list_properties(call: Call, query: PropertyQuery, properties: PropertyQueries) -> Answer:
        """The properties that every filter finds; without one, all."""
        return of.resource.listed(await properties.matching(of.kind.KIND, query.filter))

    @routes.delete("/", WRITE, answers=DeletedCountWire, name=f"withdraw_{of.kind.KIND}_list")
    @reading(query=model)
    async def withdraw_properties(call: Call, query: PropertyQuery, writes: PropertyWrites) -> Answer:
        """Delete the properties that every filter finds. At least one filter is required."""
        return await writes.remove(call, of, query.filter)


def _optional_id(alias: str) -> Any:
    return UUID | None, Field(default=None, alias=alias)

"""Use cases of custom properties: add, change, copy, move and delete them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from uuid import UUID

from domain.kernel.command import Command
from domain.kernel.errors import FieldError, Malformed, NotFound, Refused
from domain.kernel.ids import new_id
from domain.kernel.parts import delete_in_parts
from domain.kernel.ports import Executor, Invocation, Outcome, Plan
from domain.record.kinds.custom_property import CustomProperty, PropertyDetails
from domain.record.ports import PropertyFilter, PropertyLookup, RecordLookup, RecordRow
from domain.record.property_upserts import PropertyChange, Upserts, pair_of, stored_pair, upserts
from domain.record.record import Record, RegisterRecord

MAX_AT_ONCE: Final = 5000
"""The number of properties that one request may copy or delete in one append, while other appends wait."""


class PropertyHandlers:
    """Changes the properties of any kind of owner. `kind` is the kind of the property; `owner_field` is the name of the owner's
    id in requests, for a 400."""

    def __init__(self, executor: Executor, records: RecordLookup, *, properties: PropertyLookup) -> None:
        self._executor = executor
        self._records = records
        self._properties = properties

    async def add_or_change(
        self,
        kind: type[CustomProperty],
        change: PropertyChange,
        *,
        owner: UUID | None,
        owner_field: str,
        invocation: Invocation,
    ) -> Outcome[Record]:
        """Add or change the property with this id or, without an id, with this category and key. Raises `NotFound` for an
        unknown id."""

        async def plan() -> Plan:
            upserts = await self._upsert(kind, change, owner=owner, owner_field=owner_field)
            return Plan(upserts.commands)

        return await self._executor.execute(plan, invocation=invocation)

    async def _upsert(self, kind: type[CustomProperty], change: PropertyChange, *, owner: UUID | None, owner_field: str) -> Upserts:
        stored = None
        if change.id is not None:
            stored = await self._properties.find(kind, change.id)
            if stored is None:
                raise NotFound(kind.KIND, str(change.id))
        category, key = change.pair({} if stored is None else {UUID(stored.id): stored})
        owner = owner or (stored.details.owner_id if stored is not None else None)
        if owner is None:
            raise Malformed.at(owner_field, "is required")
        await self._check_owner(kind, owner)
        same_pair = await self._properties.matching(kind, PropertyFilter(owner_id=str(owner), category=category, key=key))
        return upserts(kind, owner, changes=[change], stored=same_pair if stored is None else [*same_pair, stored])

    async def add_or_change_all(
        self, kind: type[CustomProperty], owner: UUID, *, changes: Sequence[PropertyChange], invocation: Invocation
    ) -> Outcome[Record]:
        """Apply all changes or none. `places` in the result has, for each change, the index of its property among the
        aggregates."""

        async def plan() -> Plan:
            stored = await self._properties.of_owner(kind, owner)
            planned = upserts(kind, owner, changes=changes, stored=stored)
            await self._check_owner(kind, owner)
            return Plan(planned.commands, {"places": list(planned.places)})

        return await self._executor.execute(plan, invocation=invocation.at_any_version())

    async def copy(
        self, kind: type[CustomProperty], source: UUID, *, target: UUID, move: bool, invocation: Invocation
    ) -> Outcome[Record]:
        """Copy all properties of one owner to another; `move` deletes those of the source. A property of the target with the
        same category and key takes the value. The first `copied` aggregates are the copies."""

        async def plan() -> Plan:
            await self._check_owner(kind, source)
            await self._check_owner(kind, target)
            rows = _not_too_many(await self._properties.of_owner(kind, source))
            result = {"source": str(source), "target": str(target), "move": move, "copied": len(rows)}
            if source == target:
                return Plan([kind.amend.on(row.id, {}).as_planned() for row in rows], result)
            existing = {pair_of(row): row for row in await self._properties.of_owner(kind, target)}
            copies = [_copy(row, existing.get(pair_of(row)), kind=kind, target=target) for row in rows]
            deletions = [
                kind.delete.on(row.id, still={**stored_pair(row), "value": row.details.value}).as_planned() for row in rows
            ]
            return Plan([*copies, *(deletions if move else ())], result)

        return await self._executor.execute(plan, invocation=invocation.at_any_version())

    async def delete_matching(
        self, kind: type[CustomProperty], filter: PropertyFilter, *, owner_field: str, invocation: Invocation
    ) -> Outcome[Record]:
        """Delete all matching properties, in several appends. At least one filter is required. The result has the number."""
        if filter.empty:
            names = (owner_field, "category", "key", "value")
            raise Malformed(*(FieldError(name, "or another filter is required") for name in names))
        still = {name: value for name in ("category", "key", "value") if (value := getattr(filter, name)) is not None}

        return await delete_in_parts(
            self._executor,
            partial(self._properties.matching, kind, filter),
            deletion=lambda row: [kind.delete.on(row.id, still=still).as_planned()],
            most=MAX_AT_ONCE,
            invocation=invocation,
        )

    async def _check_owner(self, kind: type[CustomProperty], owner: UUID) -> None:
        owner_kind = kind.LINKS["owner_id"]
        if not await self._records.shown([(owner_kind, str(owner))]):
            raise NotFound(owner_kind, str(owner))


def _not_too_many(rows: Sequence[RecordRow[PropertyDetails]]) -> Sequence[RecordRow[PropertyDetails]]:
    if len(rows) > MAX_AT_ONCE:
        raise Refused(f"there are {len(rows)} properties; at most {MAX_AT_ONCE} can be copied at once")
    return rows


def _copy(
    row: RecordRow[PropertyDetails], existing: RecordRow[PropertyDetails] | None, *, kind: type[CustomProperty], target: UUID
) -> Command[Any]:
    value = row.details.value
    if existing is not None:
        return kind.amend.on(existing.id, {"value": value}, still=stored_pair(existing)).as_planned()
    return RegisterRecord(new_id(), kind, {**stored_pair(row), "owner_id": target, "value": value}, new=True)

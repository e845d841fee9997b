"""Queries of the custom property view."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast
from uuid import UUID

from domain.record.kinds.custom_property import CustomProperty, DestinationPropertyDetails, P, PropertyDetails
from domain.record.ports import PropertyFilter, RecordRow
from projections.kernel.data_loader import DataLoader
from projections.kernel.database.database import Database, Pool

_SELECT = (
    "SELECT kind, id, version, owner_id, category, key, value, client, date_created, date_modified "
    "FROM custom_property_view WHERE kind = %s "
)
_ORDER = ' ORDER BY owner_id, category COLLATE "C", key COLLATE "C"'
_CONDITIONS = {
    "owner_id": "owner_id = %s",
    "category": "category = %s",
    "key": "key = %s",
    "value": "md5(value) = md5(%s) AND value = %s",
}


class PropertyQueries:
    """Finds custom properties. `kind` is the kind of the property, such as `CategoryProperty`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._of_owner = DataLoader[tuple[str, str], list[RecordRow[PropertyDetails]]](self._of_owners)

    async def of_owners(self, kind: type[CustomProperty[P]], owners: Iterable[object]) -> dict[str, list[RecordRow[P]]]:
        """Return the properties of each owner, by category and key. Owners without properties are absent."""
        owner_keys = dict.fromkeys((kind.KIND, str(owner)) for owner in owners)
        properties_by_owner = await self._of_owner.many(list(owner_keys)) if owner_keys else {}
        return {owner: _of_kind(kind, properties) for (_, owner), properties in properties_by_owner.items()}

    async def of_owner(self, kind: type[CustomProperty[P]], owner: object) -> list[RecordRow[P]]:
        """Return the properties of one owner, by category and key."""
        return _of_kind(kind, await self._of_owner((kind.KIND, str(owner))) or [])

    async def _of_owners(self, owners: Sequence[tuple[str, str]]) -> dict[tuple[str, str], list[RecordRow[PropertyDetails]]]:
        properties: dict[tuple[str, str], list[RecordRow[PropertyDetails]]] = {}
        for kind in {kind for kind, _ in owners}:
            owner_ids = [owner for owner_kind, owner in owners if owner_kind == kind]
            for row in await self._rows("AND owner_id = ANY(%s) AND NOT deleted", kind, owner_ids):
                properties.setdefault((kind, str(row.details.owner_id)), []).append(row)
        return properties

    async def ever_of_owner(self, kind: type[CustomProperty], owner: object) -> list[str]:
        """Return the ids of all properties that an owner has or had. Reading a past state starts from them."""
        return [row.id for row in await self._rows("AND owner_id = %s", kind.KIND, str(owner))]

    async def find(self, kind: type[CustomProperty[P]], key: object) -> RecordRow[P] | None:
        rows = await self._rows("AND id = %s AND NOT deleted", kind.KIND, str(key))
        return next(iter(_of_kind(kind, rows)), None)

    async def matching(self, kind: type[CustomProperty[P]], selection: PropertyFilter) -> list[RecordRow[P]]:
        """Return the properties that match every part of the filter, for a command."""
        return await self._matching(self._database, kind, selection)

    async def listed(self, kind: type[CustomProperty[P]], selection: PropertyFilter) -> list[RecordRow[P]]:
        """Return the properties that match every part of the filter, for a reader, on a connection for lists."""
        return await self._matching(self._database.lists, kind, selection)

    async def _matching(self, pool: Pool, kind: type[CustomProperty[P]], selection: PropertyFilter) -> list[RecordRow[P]]:
        conditions: list[str] = []
        parameters: list[str] = []
        for name, condition in _CONDITIONS.items():
            value = getattr(selection, name)
            if value is not None:
                conditions.append(f"AND {condition} ")
                parameters += [value] * condition.count("%s")
        rows = await pool.rows(_SELECT + "AND NOT deleted " + "".join(conditions) + _ORDER, (kind.KIND, *parameters))
        return _of_kind(kind, [_row(row) for row in rows])

    async def _rows(self, condition: str, *parameters: Any) -> list[RecordRow[PropertyDetails]]:
        return [_row(row) for row in await self._database.rows(_SELECT + condition + _ORDER, parameters)]


def _of_kind(kind: type[CustomProperty[P]], rows: list[RecordRow[PropertyDetails]]) -> list[RecordRow[P]]:
    """Return rows that were selected by their kind with its type."""
    return cast("list[RecordRow[P]]", rows)


def _row(row: Sequence[Any]) -> RecordRow[PropertyDetails]:
    kind, key, version, owner, category, name, value, client, created, modified = row
    details = PropertyDetails.model_construct(owner_id=UUID(owner), category=category, key=name, value=value)
    if client is not None:
        details = DestinationPropertyDetails.model_construct(**details.__dict__, client=client)
    return RecordRow(kind, key, version, details, created, modified)

"""The decision which custom properties a write adds and which it changes. The look-ups are made before.

See docs/reference/api/custom-properties.md#unique-pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from domain.kernel.command import Command
from domain.kernel.errors import Conflict, FieldError, Malformed
from domain.kernel.ids import new_id
from domain.record.kinds.custom_property import CustomProperty, PropertyDetails
from domain.record.ports import RecordRow
from domain.record.record import RegisterRecord

Pair = tuple[str, str]


@dataclass(frozen=True)
class PropertyChange:
    """A property in a request: its id, if any, and the fields to set. `where` is the prefix of its fields in a 400."""

    id: UUID | None
    values: Mapping[str, str | None]
    where: str = ""

    def pair(self, stored: Mapping[UUID, RecordRow[PropertyDetails]]) -> Pair:
        """Return category and key: from the request or, with an id that exists, as stored."""
        row = stored.get(self.id) if self.id is not None else None
        pair = {name: self.values.get(name, getattr(row.details, name) if row else None) for name in ("category", "key")}
        missing = [FieldError(f"{self.where}{name}", "is required") for name, value in pair.items() if value is None]
        if missing:
            raise Malformed(*missing)
        return pair["category"] or "", pair["key"] or ""


@dataclass(frozen=True)
class Upserts:
    """A command for each property. `places` has, for each change of the request, the index of its command."""

    commands: Sequence[Command[Any]]
    places: Sequence[int]


def pair_of(row: RecordRow[PropertyDetails]) -> Pair:
    return row.details.category, row.details.key


def stored_pair(row: RecordRow[PropertyDetails]) -> dict[str, Any]:
    """Return the values for `still` on which a change relies that found the property by its category and key."""
    return {"owner_id": row.details.owner_id, "category": row.details.category, "key": row.details.key}


def upserts(
    kind: type[CustomProperty], owner: UUID, *, changes: Sequence[PropertyChange], stored: Iterable[RecordRow[PropertyDetails]]
) -> Upserts:
    """Return the commands for the changes. `stored` has at least those properties of the owner that the changes concern."""
    by_id = {UUID(row.id): row for row in stored}
    pairs = [change.pair(by_id) for change in changes]
    retained, places = _without_duplicates(changes, pairs)
    named = {changes[index].id for index in retained}
    others = {pair_of(row): row for key, row in by_id.items() if key not in named}
    commands = [_upsert(kind, owner, changes[index], others.get(pairs[index]), by_id) for index in retained]
    return Upserts(commands, places)


def _without_duplicates(changes: Sequence[PropertyChange], pairs: Sequence[Pair]) -> tuple[list[int], list[int]]:
    """Drop all but the last of the changes with the same id or the same pair. Return the indexes of the remaining changes and,
    for each change, the position of its replacement among them."""
    by_id: dict[UUID, int] = {}
    by_pair: dict[Pair, int] = {}
    replacement: dict[int, int] = {}
    for index in reversed(range(len(changes))):
        key, pair = changes[index].id, pairs[index]
        last = by_id.get(key) if key is not None else None
        last = by_pair.get(pair, index) if last is None else last
        if last == index:
            by_pair[pair] = index
            if key is not None:
                by_id[key] = index
        replacement[index] = last
    retained = sorted(set(replacement.values()))
    place = {index: at for at, index in enumerate(retained)}
    return retained, [place[replacement[index]] for index in range(len(changes))]


def _upsert(
    kind: type[CustomProperty],
    owner: UUID,
    change: PropertyChange,
    other: RecordRow[PropertyDetails] | None,
    by_id: Mapping[UUID, RecordRow[PropertyDetails]],
    /,
) -> Command[Any]:
    """Return the command for one change. `other` is a property that already has the pair and whose id is not in the request."""
    values = {"owner_id": owner, **change.values}
    if change.id is None:
        if other is None:
            return RegisterRecord(new_id(), kind, values, new=True)
        return kind.amend.on(other.id, values, still=stored_pair(other)).as_planned()
    if other is not None:
        raise Conflict(f"the property {other.id} already has this category and key")
    return kind.amend.on(change.id, values).as_planned() if change.id in by_id else RegisterRecord(change.id, kind, values)

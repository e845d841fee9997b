"""Decides which custom properties a write adds and which it changes; see docs/reference/api/custom-properties.md#unique-pairs.

Pure: look-ups are made before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from domain.kernel.errors import Conflict, FieldError, Malformed
from domain.kernel.ids import new_id
from domain.records.kinds.custom_property import CustomProperty
from domain.records.record import AmendRecord, RegisterRecord
from domain.records.row import RecordRow

Pair = tuple[str, str]
Upsert = RegisterRecord | AmendRecord


@dataclass(frozen=True)
class PropertyChange:
    """A property as a request has it: its id, if any, and the fields to set. `where` is the prefix of its fields in a 400."""

    id: UUID | None
    values: Mapping[str, str | None]
    where: str = ""

    def pair(self, stored: Mapping[UUID, RecordRow]) -> Pair:
        """Category and key: from the request or, with an id that exists, as stored."""
        row = stored.get(self.id) if self.id is not None else None
        pair = {name: self.values.get(name, getattr(row.details, name) if row else None) for name in ("category", "key")}
        missing = [FieldError(f"{self.where}{name}", "is required") for name, value in pair.items() if value is None]
        if missing:
            raise Malformed(*missing)
        return pair["category"] or "", pair["key"] or ""


@dataclass(frozen=True)
class Upserts:
    """One command for each property. `places` has, for each change of the request, the index of its command."""

    commands: Sequence[Upsert]
    places: Sequence[int]


def pair_of(row: RecordRow) -> Pair:
    return row.details.category, row.details.key


def stored_pair(row: RecordRow) -> dict[str, Any]:
    """For `still`: what a change relies on when it found the property by its category and key."""
    return {"owner_id": row.details.owner_id, "category": row.details.category, "key": row.details.key}


def upserts(kind: type[CustomProperty], owner: UUID, *, changes: Sequence[PropertyChange], stored: Iterable[RecordRow]) -> Upserts:
    """`stored` has at least those properties of the owner that the changes concern."""
    by_id = {UUID(row.id): row for row in stored}
    pairs = [change.pair(by_id) for change in changes]
    kept, places = _without_duplicates(changes, pairs)
    named = {changes[index].id for index in kept}
    others = {pair_of(row): row for key, row in by_id.items() if key not in named}
    commands = [_upsert(kind, owner, changes[index], others.get(pairs[index]), by_id) for index in kept]
    return Upserts(commands, places)


def _without_duplicates(changes: Sequence[PropertyChange], pairs: Sequence[Pair]) -> tuple[list[int], list[int]]:
    """Of changes with the same id or the same pair the last one counts. Gives the indexes of those that count and, for each
    change, the place of its replacement among them."""
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
    kept = sorted(set(replacement.values()))
    place = {index: at for at, index in enumerate(kept)}
    return kept, [place[replacement[index]] for index in range(len(changes))]


def _upsert(
    kind: type[CustomProperty],
    owner: UUID,
    change: PropertyChange,
    other: RecordRow | None,
    by_id: Mapping[UUID, RecordRow],
    /,
) -> Upsert:
    """`other` is a property that has the pair already and whose id is not in the request."""
    values = {"owner_id": owner, **change.values}
    if change.id is None:
        if other is None:
            return RegisterRecord(new_id(), kind, values, new=True)
        return AmendRecord(other.id, kind, values, still=stored_pair(other))
    if other is not None:
        raise Conflict(f"the property {other.id} has this category and key already")
    return AmendRecord(change.id, kind, values, still={}) if change.id in by_id else RegisterRecord(change.id, kind, values)

"""Which properties a write adds and which it changes: document 2, "(Category, key) combinations are unique; re-sending an existing
combination updates the value", and decisions.md, "Custom properties".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from domain.kernel.errors import Conflict, FieldError, Malformed
from domain.kernel.ids import new_id
from domain.records.kinds.custom_property import CustomProperty
from domain.records.record import AmendRecord, RegisterRecord
from projections.records.queries import RecordRow

Pair = tuple[str, str]
Upsert = RegisterRecord | AmendRecord


@dataclass(frozen=True)
class Wanted:
    """One property as it was sent: its id, if any, and the fields that are to be set. `where` is how a 400 names it."""

    id: UUID | None
    values: Mapping[str, str | None]
    where: str = ""

    def pair(self, stored: Mapping[UUID, RecordRow]) -> Pair:
        """Category and key, as sent or, with a known id, as stored."""
        known = stored.get(self.id) if self.id is not None else None
        pair = {name: self.values.get(name, getattr(known.details, name) if known else None) for name in ("category", "key")}
        missing = [FieldError(f"{self.where}{name}", "is required") for name, value in pair.items() if value is None]
        if missing:
            raise Malformed(*missing)
        return pair["category"] or "", pair["key"] or ""


@dataclass(frozen=True)
class Upserts:
    """The commands, one for each property; `places` says for every entry sent which of them decides about it."""

    commands: Sequence[Upsert]
    places: Sequence[int]


def pair_of(row: RecordRow) -> Pair:
    return row.details.category, row.details.key


def found_pair(row: RecordRow) -> dict[str, Any]:
    """What a change of a property rests on that was found by its category and key."""
    return {"owner_id": row.details.owner_id, "category": row.details.category, "key": row.details.key}


def upserts(kind: type[CustomProperty], owner: UUID, *, wanted: Sequence[Wanted], stored: Iterable[RecordRow]) -> Upserts:
    """`stored` are the owner's properties as far as the entries concern them."""
    known = {UUID(row.id): row for row in stored}
    pairs = [one.pair(known) for one in wanted]
    winners, places = _twins(wanted, pairs)
    named = {wanted[winner].id for winner in winners}
    others = {pair_of(row): row for key, row in known.items() if key not in named}
    commands = [_upsert(kind, owner, wanted[winner], others.get(pairs[winner]), known) for winner in winners]
    return Upserts(commands, places)


def _twins(wanted: Sequence[Wanted], pairs: Sequence[Pair]) -> tuple[list[int], list[int]]:
    """Of entries with the same id or the same pair the last wins. Which win, and for every entry its winner's place."""
    by_id: dict[UUID, int] = {}
    by_pair: dict[Pair, int] = {}
    winner_of: dict[int, int] = {}
    for index in reversed(range(len(wanted))):
        key, pair = wanted[index].id, pairs[index]
        winner = by_id.get(key) if key is not None else None
        winner = by_pair.get(pair, index) if winner is None else winner
        if winner == index:
            by_pair[pair] = index
            if key is not None:
                by_id[key] = index
        winner_of[index] = winner
    winners = sorted(set(winner_of.values()))
    place = {winner: at for at, winner in enumerate(winners)}
    return winners, [place[winner_of[index]] for index in range(len(wanted))]


def _upsert(
    kind: type[CustomProperty], owner: UUID, one: Wanted, other: RecordRow | None, known: Mapping[UUID, RecordRow], /
) -> Upsert:
    """`other` is a property that has the pair already and that the write does not name by its id."""
    values = {"owner_id": owner, **one.values}
    if one.id is None:
        if other is None:
            return RegisterRecord(new_id(), kind, values, new=True)
        return AmendRecord(other.id, kind, values, still=found_pair(other))
    if other is not None:
        raise Conflict(f"the property {other.id} has this category and key already")
    return AmendRecord(one.id, kind, values, still={}) if one.id in known else RegisterRecord(one.id, kind, values)


def carried_out(commands: Iterable[Upsert], stored: Iterable[RecordRow], *, at: datetime) -> list[RecordRow]:
    """The properties of an owner as they will be, by category and key: for an answer that is worded before the append."""
    rows = {row.id: row for row in stored}
    for command in commands:
        key, old = str(command.key), rows.get(str(command.key))
        if isinstance(command, AmendRecord) and old is not None:
            rows[key] = replace(old, details=old.details.model_copy(update=command.changes))
        elif isinstance(command, RegisterRecord):
            rows[key] = RecordRow(command.of.KIND, key, 1, command.of.DETAILS.model_validate(command.values), at, at)
    return sorted(rows.values(), key=pair_of)

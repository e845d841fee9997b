"""A record that a person names on the command line, by its id or by its name."""

from __future__ import annotations

from uuid import UUID

from api.wiring.startup import StartError
from domain.records.record import Record
from domain.records.row import RecordRow
from projections.records.queries import RecordQueries


async def named_record(records: RecordQueries, kind: type[Record], wanted: str) -> RecordRow:
    """The one with this id, or the only one with this name."""
    try:
        found = await records.find(kind.KIND, UUID(wanted))
    except ValueError:
        found = None
    named = [found] if found is not None else [row for row in await records.all(kind.KIND) if row.details.name == wanted]
    if not named:
        raise StartError(f"there is no {kind.KIND} {wanted!r}")
    if len(named) > 1:
        raise StartError(f"{len(named)} {kind.KIND}s have this name; by id: {', '.join(row.id for row in named)}")
    return named[0]

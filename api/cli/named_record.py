"""A record that a person refers to on the command line by its id or its name."""

from __future__ import annotations

from uuid import UUID

from api.wiring.startup import StartError
from domain.record.ports import RecordRow
from domain.record.record import Record
from projections.record.queries import RecordQueries


async def named_record(records: RecordQueries, kind: type[Record], id_or_name: str) -> RecordRow:
    """Return the record with this id, or the only record with this name. Raise `StartError` if there is none, or several."""
    try:
        match = await records.find(kind.KIND, UUID(id_or_name))
    except ValueError:
        match = None
    named = [match] if match is not None else [row for row in await records.all(kind.KIND) if row.details.name == id_or_name]
    if not named:
        raise StartError(f"the {kind.KIND} {id_or_name!r} does not exist")
    if len(named) > 1:
        raise StartError(f"{len(named)} {kind.KIND}s have this name; give one of the ids {', '.join(row.id for row in named)}")
    return named[0]

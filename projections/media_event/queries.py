"""Questions about media Events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from domain.media_event.aggregate import MediaEvent
from domain.media_event.values import EventDetails
from projections.kernel.coalesce import Coalesced
from projections.kernel.database import Database
from projections.kernel.page import Page
from projections.media_event.filters import EventFilter, ids_of, names_question, question


@dataclass(frozen=True, slots=True)
class EventRow:
    """An Event as it stands, or stood. `id` is also its contentId."""

    id: UUID
    version: int
    details: EventDetails
    date_created: datetime
    date_modified: datetime

    @classmethod
    def of(cls, event: MediaEvent) -> EventRow:
        return cls(UUID(event.key), event.version, event.details, event.created_on, event.modified_on)


_COLUMNS = "SELECT id, version, document, date_created, date_modified FROM event_view "
_LATEST = " ORDER BY date_created DESC, id DESC LIMIT 1"


class EventQueries:
    """All reads of the Event view. Reads by id asked for in the same moment share one query."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._by_id = Coalesced[UUID, EventRow](self._those)

    async def by_id(self, key: UUID) -> EventRow | None:
        """The Event, unless it is deleted."""
        return await self._by_id(key)

    async def _those(self, keys: Sequence[UUID]) -> dict[UUID, EventRow]:
        rows = await self._database.rows(_COLUMNS + "WHERE id = ANY(%s) AND NOT deleted", (list(keys),))
        return {row[0]: _row(row) for row in rows}

    async def by_reference(self, reference_id: str) -> EventRow | None:
        """Not unique: the most recently created living Event with this refId."""
        return await self._one("WHERE ref_id = %s AND NOT deleted" + _LATEST, reference_id)

    async def by_external_id(self, external_id: str) -> EventRow | None:
        return await self._one("WHERE external_id = %s AND NOT deleted" + _LATEST, external_id)

    async def _one(self, condition: str, value: str) -> EventRow | None:
        found = await self._database.row(_COLUMNS + condition, (value,))
        return _row(found) if found else None

    async def page(self, wanted: EventFilter) -> Page[EventRow]:
        """Names are looked up first: with the ids in hand PostgreSQL knows how many Events to expect."""
        names = names_question(wanted)
        ids = ids_of(wanted, await self._database.rows(*names)) if names is not None else {}
        if not all(ids.values()):
            return Page(wanted.window.limit, 0, [])
        asked = question(wanted, ids)
        rows, total = await self._database.page(asked.page, asked.count, parameters=asked.parameters, prepare=asked.prepare)
        return Page(wanted.window.limit, total, [_row(row) for row in rows])


def _row(row: Sequence[Any]) -> EventRow:
    key, version, document, created, modified = row
    return EventRow(key, version, _DETAILS.validate_json(document), created, modified)


_DETAILS = EventDetails.__pydantic_validator__

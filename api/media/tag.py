"""The tags of an Event, and its documents: where an Event's `tagUrl` and `documentUrl` lead. Document 2, "Tags"."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from api.kernel.answer import Answer
from api.kernel.auth import READ
from api.kernel.call import Call
from api.kernel.pages import FreshQuery
from api.kernel.routes import Routes
from api.kernel.wire import Wire
from domain.records.kinds.tag import Tag
from projections.media_event.queries import EventQueries
from projections.records.queries import RecordQueries

routes = Routes("", tag="Tags")


class TagWire(Wire):
    id: UUID
    name: str


@routes.get("/tag/event/{id}", READ, answers=list[TagWire])
async def tags_of_event(call: Call, id: UUID, query: FreshQuery, events: EventQueries, records: RecordQueries) -> Answer:
    """The tags of an Event; none for an Event that is not there."""
    event = await events.by_id(id)
    tags = await records.those(Tag.KIND, event.details.tag_ids) if event is not None else []
    return Answer(200, [shaped(row.id, row.details) for row in tags])


@routes.get("/document/event/{id}", READ, answers=list[dict[str, Any]])
async def documents_of_event(call: Call, id: UUID) -> Answer:
    """The documents of an Event. decisions.md, Events: there are none yet, so the list is empty."""
    return Answer(200, [])


def shaped(key: str, details: Any) -> dict[str, Any]:
    return {"id": key, "name": details.name}

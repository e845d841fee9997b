"""Tags, and the documents of an Event, where its `documentUrl` leads. Document 2, "Tags"; DELETE is ours."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from api.kernel.answer import Answer
from api.kernel.auth import READ, WRITE
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.pages import FreshQuery
from api.kernel.routes import Routes
from api.kernel.wire import Wire
from api.media.event.changes import EventChanges
from api.media.event.wire import TagList, TagModel
from api.media.resource import Resource
from api.media.standard import StandardRoutes
from domain.media_event.aggregate import MediaEvent
from domain.media_event.commands import AmendEvent, Replacement
from domain.records.kinds.tag import Tag
from domain.records.record import AmendRecord, Record, RegisterRecord
from projections.log.ledger import Plan
from projections.media_event.queries import EventQueries
from projections.records.queries import RecordQueries, RecordRow

routes = Routes("/tag", tag="Tags")
documents = Routes("/document", tag="Documents")


class TagWire(Wire):
    id: UUID
    name: str


class ExistsWire(Wire):
    exists: bool


def shaped(tag: RecordRow) -> dict[str, Any]:
    return {"id": tag.id, "name": tag.details.name}


TAGS = Resource(Tag, "/api/tag", shaped)
StandardRoutes(routes, TAGS, TagWire, absent=204).withdraw().by_id().events()


@routes.put("/", WRITE, answers=TagWire, status=201)
async def put_tag(call: Call, body: TagModel, bus: CommandBus, records: RecordQueries) -> Answer:
    """Add a tag, or rename the one with this id.

    Without an id the tag that has the name already is the answer. A name that belongs to another tag is 409."""
    if body.id is not None:
        return await bus.send(call, TAGS.put(body.id, body), TAGS.created)

    async def plan() -> Plan[Record]:
        known = (await records.named(Tag.KIND, [body.name])).get(body.name)
        return Plan(TAGS.add(body) if known is None else AmendRecord(known.id, Tag, {}, still={"name": body.name}))

    return await bus.send(call, plan, TAGS.created)


@routes.get("/exists/{text}", READ, answers=ExistsWire)
async def tag_exists(call: Call, text: str, records: RecordQueries) -> Answer:
    """Whether there is a tag of exactly this name, percent-encoded."""
    return Answer(200, {"exists": text in await records.named(Tag.KIND, [text])})


@routes.put("/event/{id}", WRITE, answers=list[TagWire])
async def replace_tags_of_event(call: Call, id: UUID, body: TagList, bus: CommandBus, changes: EventChanges) -> Answer:
    """Replace all tags of an Event. The names decide: a name that is known is reused, another makes a tag."""

    async def plan() -> Plan[MediaEvent]:
        new: dict[str, RegisterRecord] = {}
        tags = await changes.tags(body, new)
        return Plan(AmendEvent(id, (Replacement("tag_ids", tags),)), list(new.values()))

    async def show(event: MediaEvent) -> Answer:
        names = dict.fromkeys(tag.name for tag in body)
        tags = zip(event.details.tag_ids, names, strict=True)
        return Answer(200, [{"id": key, "name": name} for key, name in tags])

    return await bus.send(call, plan, show)


@routes.get("/event/{id}", READ, answers=list[TagWire])
async def tags_of_event(call: Call, id: UUID, query: FreshQuery, events: EventQueries, records: RecordQueries) -> Answer:
    """The tags of an Event; none for an Event that is not there."""
    event = await events.by_id(id)
    tags = await records.those(Tag.KIND, event.details.tag_ids) if event is not None else []
    return TAGS.listed(tags)


@documents.get("/event/{id}", READ, answers=list[dict[str, Any]])
async def documents_of_event(call: Call, id: UUID) -> Answer:
    """The documents of an Event. decisions.md, Events: there are none yet, so the list is empty."""
    return Answer(200, [])

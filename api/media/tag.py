"""Tags and the documents of Events; see docs/reference/api/tags.md."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field

from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.pages import FreshQuery
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Wire
from api.media.event.patch import tag_names
from api.media.event.requests import TagList, TagModel
from api.media.resource import Resource
from api.media.standard import StandardRoutes
from domain.event.aggregate import MediaEvent
from domain.event.handlers import EventHandlers
from domain.kernel.ports import Outcome
from domain.record.handlers import TagHandlers
from domain.record.kinds.tag import Tag as TagRecord
from domain.record.kinds.tag import TagDetails
from domain.record.ports import RecordRow
from domain.record.record import Record
from projections.event.queries import EventQueries
from projections.record.history import RecordHistory
from projections.record.queries import RecordQueries

routes = APIRouter(prefix="/api/tag", tags=["Tags"], route_class=MediaRoute)
documents = APIRouter(prefix="/api/document", tags=["Documents"], route_class=MediaRoute)


class Tag(Wire):
    """A tag in a response."""

    id: UUID = Field(description="The id of the tag.")
    name: str = Field(description="The unique name of the tag.")

    @classmethod
    def of(cls, row: RecordRow[TagDetails]) -> Tag:
        return cls.model_construct(id=UUID(row.id), name=row.details.name)


class TagExistence(Wire):
    exists: bool = Field(description="True if a tag with exactly this name exists.")


TAGS = Resource(TagRecord, "/api/tag", Tag.of)
StandardRoutes(routes, TAGS, Tag, absent=204).delete().by_id()


@routes.put("/", dependencies=[WRITE], response_model=Tag, status_code=201)
@rules(respond=TAGS.respond_created)
async def add_or_rename_tag(request: Request, body: TagModel, handlers: Service[TagHandlers]) -> Outcome[Record]:
    """Add a tag, or rename the tag with this id.

    Without an id the response is the tag that already has the name, if there is one. A name of another tag is 409.
    """
    return await handlers.add_or_rename(body.id, body.name, invocation=request.invocation)


@routes.get("/exists/{text}", dependencies=[READ], response_model=TagExistence, name="check_tag_exists")
@rules(absent="never")
async def tag_exists(request: Request, text: str, records: Service[RecordQueries]) -> Response:
    """Check whether a tag with exactly this name exists. The name is percent-encoded."""
    exists = text in await records.named(TagRecord, [text])
    return Response(TagExistence.model_construct(exists=exists))


async def tags_replaced(request: Request, outcome: Outcome[MediaEvent], history: Service[RecordHistory]) -> Response:
    return TAGS.listed(await history.at(outcome.as_of).by_ids(TagRecord, outcome.aggregate.details.tag_ids))


@routes.put("/event/{id}", dependencies=[WRITE], response_model=list[Tag])
@rules(respond=tags_replaced)
async def replace_tags_of_event(request: Request, id: UUID, body: TagList, handlers: Service[EventHandlers]) -> Outcome[MediaEvent]:
    """Replace all tags of an Event. Tags are found by their names; a new name creates a tag."""
    return await handlers.replace_tags(id, tag_names(body), invocation=request.invocation)


@routes.get("/event/{id}", dependencies=[READ], response_model=list[Tag], name="list_tags_of_event")
@rules(absent="never")
async def tags_of_event(
    request: Request,
    id: UUID,
    query: Annotated[FreshQuery, Query()],
    events: Service[EventQueries],
    records: Service[RecordQueries],
) -> Response:
    """The tags of an Event; an empty list for an unknown Event."""
    event = await events.by_id(id)
    tags = await records.by_ids(TagRecord, event.details.tag_ids) if event is not None else []
    return TAGS.listed(tags)


@documents.get("/event/{id}", dependencies=[READ], response_model=list[dict[str, Any]], name="list_documents_of_event")
@rules(absent="never")
async def documents_of_event(request: Request, id: UUID) -> Response:
    """The documents of an Event. No Event has documents yet, so the list is empty."""
    return Response([])

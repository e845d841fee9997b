"""Lists of the Events of one room, tag, category or event type.

They are separate from the routes of these resources, because an Event shows its categories: modules that Events are built from
must not import Events.
"""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query

from api.http.response import Response
from api.http.routing import Service, declared, rules
from api.kernel.auth import READ
from api.kernel.pages import PageQuery
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.media.event.presenter import EventPresenter
from api.media.event.responses import EventCollection
from domain.record.kinds.category import Category
from domain.record.kinds.event_type import EventType
from domain.record.kinds.room import Room
from domain.record.kinds.tag import Tag
from domain.record.record import Record
from projections.event.filters import EventFilter
from projections.event.queries import EventQueries


def events_of(kind: type[Record], *, path: str, tag: str) -> APIRouter:
    """Return the route of one kind, for which `EventFilter` must have an id."""
    router = APIRouter(prefix=f"/api{path}", tags=[tag], route_class=MediaRoute)
    noun = kind.KIND.replace("_", " ")

    @router.get("/{id}/events/", dependencies=[READ], response_model=EventCollection, name=f"list_events_of_{kind.KIND}")
    @rules(absent="never")
    @declared(f"The Events of {'an' if noun[0] in 'aeiou' else 'a'} {noun}, by scheduled start.")
    async def events_of_record(
        request: Request,
        id: UUID,
        query: Annotated[PageQuery, Query()],
        events: Service[EventQueries],
        presenter: Service[EventPresenter],
    ) -> Response:
        link: dict[str, Any] = {f"{kind.KIND}_id": id}
        return await presenter.page(request, await events.page(EventFilter(**link, descending=query.order, window=query.window)))

    return router


ROUTES = (
    events_of(Room, path="/room", tag="Rooms"),
    events_of(Tag, path="/tag", tag="Tags"),
    events_of(Category, path="/category", tag="Categories"),
    events_of(EventType, path="/eventtype", tag="Event types"),
)

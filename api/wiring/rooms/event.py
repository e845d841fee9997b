"""Events: live and recorded video."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from domain.media_event.aggregate import MediaEvent
from domain.media_event.handlers import EventHandlers
from domain.media_event.row import EventRow
from projections.kernel.database import Database
from projections.log.executor import CommandExecutor
from projections.logbook.logbook import Logbook
from projections.media_event.queries import EventQueries
from projections.media_event.view import EVENT_VIEW
from projections.records.history import RecordHistory
from projections.records.queries import RecordQueries

if TYPE_CHECKING:
    from api.audit.past_states import Moment, Renderer
    from api.http.router import Router


def _routes() -> Sequence[Router]:
    from api.media.event import routes

    return (routes.routes,)


def _services(services: Services) -> Providers:
    from api.media.event.presenter import EventPresenter

    get = services.get
    return {
        EventQueries: lambda: EventQueries(get(Database)),
        EventPresenter: lambda: EventPresenter(get(RecordHistory)),
        EventHandlers: lambda: EventHandlers(
            get(CommandExecutor), get(RecordQueries), events=get(EventQueries), notes=get(Logbook)
        ),
    }


def _past_states(services: Services) -> Mapping[str, Renderer]:
    from api.media.event.presenter import EventPresenter

    presenter = services.get(EventPresenter)

    async def event(root: MediaEvent, moment: Moment) -> Any:
        return await presenter.event(EventRow.of(root), base_url=moment.base_url, as_of=moment.position)

    return {MediaEvent.KIND: event}


EVENT = Room(
    name="event",
    aggregates=(MediaEvent,),
    views=(EVENT_VIEW,),
    routes=_routes,
    services=_services,
    past_states=_past_states,
)

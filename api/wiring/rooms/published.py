"""Published media: the files of the media root for players."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from projections.clients.directory import ClientDirectory
from projections.media_event.queries import EventQueries

if TYPE_CHECKING:
    from api.http.router import Router


def _routes() -> Sequence[Router]:
    from api.published.routes import routes

    return (routes,)


def _services(services: Services) -> Providers:
    from api.kernel.browser_sessions import BrowserSessions
    from api.published.files import PublishedFiles

    get, source = services.get, services.surroundings.media_served
    return {PublishedFiles: lambda: PublishedFiles(source, get(EventQueries), get(ClientDirectory), sessions=get(BrowserSessions))}


PUBLISHED = Room(name="published", routes=_routes, services=_services)

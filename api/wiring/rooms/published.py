"""Published media: the files of the media root for players."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from projections.client.directory import ClientDirectory
from projections.event.queries import EventQueries
from workers.kernel.fair_places import FairPlaces

if TYPE_CHECKING:
    from fastapi import APIRouter

_MOST_READ: Final = 256
"""The maximum number of files that a process reads at a time."""


def _routes() -> Sequence[APIRouter]:
    from api.published.routes import routes

    return (routes,)


def _services(services: Services) -> Providers:
    from api.kernel.browser_sessions import BrowserSessions
    from api.published.files import PublishedFiles
    from api.published.readers import Readers
    from api.published.viewers import Viewers

    get, source = services.get, services.environment.media_served

    return {
        Viewers: lambda: Viewers(get(ClientDirectory), get(BrowserSessions)),
        PublishedFiles: lambda: PublishedFiles(source, get(EventQueries), get(Viewers), readers=Readers(FairPlaces(_MOST_READ))),
    }


PUBLISHED = Room(name="published", routes=_routes, services=_services)

"""The built-in origin: live streams of encoders, for laptops and tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from workers.kernel.fair_places import FairPlaces

if TYPE_CHECKING:
    from fastapi import APIRouter


def _routes() -> Sequence[APIRouter]:
    from api.origin import ingest, routes

    return (ingest.routes, routes.routes)


def _services(services: Services) -> Providers:
    from api.origin.access import MOST_READ, OriginAccess
    from api.published.readers import Readers
    from api.published.viewers import Viewers

    def access() -> OriginAccess:
        return OriginAccess(services.environment.origin, Readers(FairPlaces(MOST_READ)), services.get(Viewers))

    return {OriginAccess: access}


ORIGIN = Room(name="origin", routes=_routes, services=_services)

"""The web console for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.wiring.container import Providers, Services
from api.wiring.room import Room

if TYPE_CHECKING:
    from api.http.router import Router


def _routes() -> Sequence[Router]:
    from api.console import routes

    return (routes.root, routes.routes)


def _services(services: Services) -> Providers:
    from api.console.files import ConsoleFiles, built_console

    origins = services.surroundings.console_media_origins
    return {ConsoleFiles: lambda: ConsoleFiles(built_console(), media_origins=origins)}


CONSOLE = Room(name="console", routes=_routes, services=_services)

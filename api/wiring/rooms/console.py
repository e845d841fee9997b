"""The web console for people: its files and its sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from projections.client.console_sessions import ConsoleSessions
from projections.client.directory import ClientDirectory
from projections.kernel.database.database import Database
from projections.kernel.schema.migrate import Migration
from projections.log_store.log_store import Logbook

if TYPE_CHECKING:
    from fastapi import APIRouter


def _routes() -> Sequence[APIRouter]:
    from api.console import routes, session

    return (session.routes, routes.root, routes.routes)


def _services(services: Services) -> Providers:
    from api.console.files import ConsoleFiles, built_console
    from api.console.session import Logins
    from api.kernel.auth import caller_of
    from api.kernel.authentication import Sessions
    from api.kernel.browser_sessions import BrowserSessions
    from api.kernel.known_callers import KnownCallers

    get, environment = services.get, services.environment
    return {
        ConsoleFiles: lambda: ConsoleFiles(built_console(), media_origins=environment.console_media_origins),
        ConsoleSessions: lambda: ConsoleSessions(
            get(Database), get(ClientDirectory), clock=environment.clock, limits=environment.session_limits
        ),
        BrowserSessions: lambda: BrowserSessions(get(ConsoleSessions), caller_of),
        Sessions: lambda: get(BrowserSessions),
        KnownCallers: lambda: KnownCallers(environment.callers, get(BrowserSessions)),
        Logins: lambda: Logins(get(ConsoleSessions), get(Logbook), clock=environment.clock),
    }


CONSOLE = Room(
    name="console",
    migrations=(Migration.read("0043 console sessions", "client/console_sessions.sql"),),
    routes=_routes,
    services=_services,
)

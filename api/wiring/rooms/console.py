"""The web console for people: its files and its sessions."""

from __future__ import annotations

from api.wiring.room import Room
from projections.kernel.schema.migrate import Migration

CONSOLE = Room(
    name="console",
    migrations=(Migration.read("0043 console sessions", "client/console_sessions.sql"),),
    routes=("api.console.session:routes", "api.console.routes:root", "api.console.routes:routes"),
)

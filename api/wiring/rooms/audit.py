"""The audit: the event log as operators read it, past states of aggregates, and the check of the hash chain."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from domain.kernel.mapper import Catalogue
from projections.audit.queries import AuditQueries
from projections.audit.user_audit_log import UserAuditLog
from projections.audit.verify import verify
from projections.kernel.database import Database
from projections.kernel.migrate import Grant, Migration
from projections.log.streams import Streams

if TYPE_CHECKING:
    from api.http.router import Router


def _routes() -> Sequence[Router]:
    from api.audit import routes

    return (routes.routes,)


def _services(services: Services) -> Providers:
    from api.audit.routes import Verifier

    get, conninfo = services.get, services.surroundings.conninfo
    return {
        AuditQueries: lambda: AuditQueries(get(Database).lists, get(Streams), get(Catalogue)),
        Verifier: lambda: Verifier(partial(verify, conninfo)),
        UserAuditLog: lambda: UserAuditLog(get(Database).lists),
    }


AUDIT = Room(
    name="audit",
    migrations=(Migration.read("0021 checkpoints", "audit/checkpoints.sql"),),
    grants=(
        Grant("TABLE checkpoints", "SELECT, INSERT"),
        Grant("TABLE checkpoint_anchors", "SELECT, INSERT"),
        Grant("TABLE checkpoint_keys", "SELECT, INSERT"),
    ),
    routes=_routes,
    services=_services,
)

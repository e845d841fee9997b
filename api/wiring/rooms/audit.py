"""The audit: the event log as operators read it, past states of aggregates, and the check of the hash chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from domain.kernel.mapper import Catalogue
from domain.redaction.aggregate import Redaction
from projections.audit.queries import AuditQueries
from projections.audit.user_audit_log import UserAuditLog
from projections.audit.verify import verify
from projections.kernel.database import Database
from projections.log.streams import Streams

if TYPE_CHECKING:
    from api.audit.past_states import Moment, Renderer
    from api.http.router import Router


def _routes() -> Sequence[Router]:
    from api.audit import diff, redactions, routes

    return (redactions.routes, routes.routes, diff.routes)


def _services(services: Services) -> Providers:
    from api.audit.routes import Verifier

    get, conninfo = services.get, services.surroundings.conninfo
    return {
        AuditQueries: lambda: AuditQueries(get(Database).lists, get(Streams), get(Catalogue)),
        Verifier: lambda: Verifier(partial(verify, conninfo)),
        UserAuditLog: lambda: UserAuditLog(get(Database).lists),
    }


def _past_states(services: Services) -> Mapping[str, Renderer]:
    async def redaction(root: Redaction, moment: Moment) -> Any:
        return {"reason": root.reason, "parts": list(root.parts), "positions": [list(one) for one in root.positions]}

    return {Redaction.KIND: redaction}


AUDIT = Room(name="audit", aggregates=(Redaction,), routes=_routes, services=_services, past_states=_past_states)

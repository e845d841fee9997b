"""The endpoints for operators: liveness, readiness, metrics, the AsyncAPI document, and the order to be quiet."""

from __future__ import annotations

from api.wiring.room import Room
from domain.record.kinds.quiet import Quiet

OPERATIONS = Room(name="operations", routes=("api.operations.routes:liveness", "api.operations.routes:routes"))
QUIET = Room(
    name="quiet",
    aggregates=(Quiet,),
    routes=("api.media.quiet:routes",),
    past_states=("api.media.quiet:past_states",),
)

"""The audit: the event log as operators read it, past states of aggregates, and the verification of the hash chain."""

from __future__ import annotations

from api.wiring.room import Room, WorkerRole
from domain.redaction.aggregate import Redaction
from projections.kernel.schema.migrate import Grant, Migration

AUDIT = Room(
    name="audit",
    aggregates=(Redaction,),
    migrations=(Migration.read("0021 checkpoints", "audit/checkpoints.sql"),),
    grants=(
        Grant("TABLE checkpoints", "SELECT, INSERT"),
        Grant("TABLE checkpoint_anchors", "SELECT, INSERT"),
        Grant("TABLE checkpoint_keys", "SELECT, INSERT"),
    ),
    routes=(
        "api.audit.checkpoints:routes",
        "api.audit.integrity:routes",
        "api.audit.redactions:routes",
        "api.audit.routes:routes",
        "api.audit.diff:routes",
    ),
    services={"workers.audit.sealing.sealer:Anchoring": "api.wiring.providers:anchoring"},
    past_states=("api.audit.redactions:past_states",),
    worker_roles=(WorkerRole("sealer", "workers.audit.sealing.role:sealer", inside=True),),
)

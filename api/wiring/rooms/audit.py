"""The audit: the event log as operators read it, past states of aggregates, and the verification of the hash chain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from api.wiring.container import Providers, Services
from api.wiring.room import Room, WorkerRole
from domain.kernel.ids import new_id
from domain.kernel.mapper import Catalogue
from domain.redaction.aggregate import Redaction
from projections.audit.queries import AuditQueries
from projections.audit.user_audit_log import UserAuditLog
from projections.audit.verify import verify
from projections.kernel.database.database import Database
from projections.kernel.schema.migrate import Grant, Migration
from projections.log.streams import Streams

if TYPE_CHECKING:
    from fastapi import APIRouter

    from api.audit.past_states import Moment, Renderer
    from workers.ports.checkpoints import Anchor
    from workers.wiring import SharedWorkers, Worker, WorkerContext


def _routes() -> Sequence[APIRouter]:
    from api.audit import checkpoints, diff, integrity, redactions, routes

    return (checkpoints.routes, integrity.routes, redactions.routes, routes.routes, diff.routes)


def _services(services: Services) -> Providers:
    from api.audit.checkpoints import LogProofs
    from api.audit.routes import Verifier

    get, conninfo = services.get, services.environment.conninfo
    return {
        AuditQueries: lambda: AuditQueries(get(Database).lists, get(Streams), get(Catalogue)),
        LogProofs: lambda: LogProofs(conninfo),
        Verifier: lambda: Verifier(partial(verify, conninfo)),
        UserAuditLog: lambda: UserAuditLog(get(Database).lists),
    }


def _sealer(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from projections.consumers.leases import ShardLeases
    from workers.audit.sealing.sealer import CONSUMER, Anchoring, Sealer

    leases = ShardLeases(context.database, CONSUMER, shards=1, member=new_id(), host=context.host, reads_log=False)
    anchoring = Anchoring(context.database, list(_anchors(context)), quiet=context.quiet)
    return [Sealer(context.database, context.vault, anchoring=anchoring, seconds=context.checkpoints.seconds, leases=leases)]


def _anchors(context: WorkerContext) -> Iterator[Anchor]:
    """Yield the configured anchors. Others are not imported: a library for buckets takes a fifth of the time of a start."""
    places = context.checkpoints
    if places.file is not None:
        from workers.adapters.file_anchor import FileAnchor

        yield FileAnchor(places.file)
    if places.bucket is not None:
        from workers.adapters.file_anchor import BucketAnchor

        yield BucketAnchor(places.bucket, days=places.bucket_days, clock=context.clock)
    if places.time_stamps is not None:
        from workers.audit.sealing.time_stamp import TimeStamp

        yield TimeStamp(places.time_stamps, context.outbound)


def _past_states(services: Services) -> Mapping[str, Renderer]:
    async def redaction(root: Redaction, moment: Moment) -> Any:
        return {"reason": root.reason, "parts": list(root.parts), "positions": [list(position) for position in root.positions]}

    return {Redaction.KIND: redaction}


AUDIT = Room(
    name="audit",
    aggregates=(Redaction,),
    migrations=(Migration.read("0021 checkpoints", "audit/checkpoints.sql"),),
    grants=(
        Grant("TABLE checkpoints", "SELECT, INSERT"),
        Grant("TABLE checkpoint_anchors", "SELECT, INSERT"),
        Grant("TABLE checkpoint_keys", "SELECT, INSERT"),
    ),
    routes=_routes,
    services=_services,
    past_states=_past_states,
    worker_roles=(WorkerRole("sealer", _sealer, inside=True),),
)

"""The worker roles of a process, on a database that is prepared first. No part of the API is imported here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name

from prometheus_client import CollectorRegistry

from api.wiring.catalogue import WORKER_ROLES
from api.wiring.container import Container
from api.wiring.core import Core, core, prepare
from api.wiring.master_keys import fitting_keys
from projections.client.changes import ClientChanges
from projections.kernel.database.database import PoolLimits
from projections.kernel.tracing import UNTRACED, Tracer
from projections.log.limits import DEFAULT_LIMITS, LogLimits
from projections.log.log_watcher import LogWatcher
from projections.record.queries import RecordQueries
from workers.audit.index import AuditIndex
from workers.audit.redactions import RedactionTask
from workers.audit.verification import LogVerifier
from workers.kernel.consumer_factory import Broker
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.quiet import QuietMode
from workers.kernel.worker import SharedWorker, Worker
from workers.retention import Retention
from workers.wiring import Workers


async def prepared_core(
    database: str,
    master_key_file: Path,
    *,
    owner: str | None = None,
    changes: ClientChanges | None = None,
    processes: int = 1,
    pools: PoolLimits | None = None,
    limits: LogLimits = DEFAULT_LIMITS,
    tracer: Tracer = UNTRACED,
) -> Core:
    """Return the core on a migrated database, with the keys of its secrets. Raise `StartError` if the master key is missing or is
    another one. The limits on waiting changes are for all `processes`."""
    role = await prepare(database, owner=owner)
    ring = await fitting_keys(database, master_key_file)
    return core(database, role=role, ring=ring, changes=changes, pools=pools, limits=limits.among(processes), tracer=tracer)


def workers_of(container: Container, roles: Sequence[str], *, permanent: bool = True) -> Workers:
    """Return the workers of this process, not yet started. A role that needs Kafka is omitted if there is no broker."""
    chosen = [WORKER_ROLES[name] for name in roles]
    if container[Broker] is None:
        chosen = [role for role in chosen if not role.needs_kafka]
    metrics = WorkerMetrics(container[CollectorRegistry])
    container.give(WorkerMetrics, metrics)

    def make(*, quiet: bool) -> Sequence[Sequence[Worker]]:
        """Return the workers in groups, in the order in which they start: first each that the roles share."""
        scope = container.scope()
        if quiet:
            scope.give(Broker, None)
        made: list[Worker] = []
        for role in chosen:
            if role.inside or not quiet:
                made += scope.call(role.make, **role.arguments)
                for path in role.needs:
                    scope.get(resolve_name(path))
        return [*([worker] for worker in scope.made if isinstance(worker, SharedWorker)), made]

    always = (Retention, RedactionTask, LogVerifier, AuditIndex) if permanent else ()
    return Workers(
        [role.name for role in chosen],
        make,
        always=[container[LogWatcher], *(container[kind] for kind in always)],
        quiet=container[QuietMode],
        records=container[RecordQueries],
        metrics=metrics,
    )

"""The role `sessions`: runs the encoders of channels, and pushes to platforms."""

from __future__ import annotations

from collections.abc import Sequence

from domain.event.aggregate import MediaEvent
from domain.kernel.ids import new_id
from domain.publication.aggregate import Publication
from projections.kernel.database.database import Database
from projections.session.store import SessionStore
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.settings import Identity
from workers.kernel.worker import Worker
from workers.session.encoders import EncoderSessions
from workers.session.kinds import SessionKind
from workers.session.pushes import PushSessions
from workers.session.worker import CONSUMER, LEASE, PUSHES, SHARDS, SessionWorker


def sessions(
    consumers: ConsumerFactory,
    database: Database,
    *,
    encoders: EncoderSessions,
    pushes: PushSessions,
    identity: Identity,
    metrics: WorkerMetrics,
) -> Sequence[Worker]:
    wakeups = consumers.wakeups({MediaEvent.KIND, Publication.KIND})
    member = new_id()

    def worker(kind: SessionKind, consumer: str) -> SessionWorker:
        return SessionWorker(
            kind,
            SessionStore(database, kind.wanted),
            leases=consumers.leases(consumer, shards=SHARDS, member=member, lease=LEASE),
            waker=wakeups.waker(),
            host=identity.machine,
            metrics=metrics.sessions,
        )

    return [worker(encoders, CONSUMER), worker(pushes, PUSHES)]

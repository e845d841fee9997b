"""The role `sessions`: runs the encoders of channels, and pushes to platforms."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from domain.event import events
from domain.kernel.ids import new_id
from domain.publication.aggregate import Publication
from projections.kernel.database.database import Database
from projections.session.store import SessionStore
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.settings import Identity
from workers.kernel.wakeups import SLOW_POLL
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
    member = new_id()

    def worker(kind: SessionKind, consumer: str, *, topics: Collection[str]) -> SessionWorker:
        return SessionWorker(
            kind,
            SessionStore(database, kind.wanted),
            leases=consumers.leases(consumer, shards=SHARDS, member=member, lease=LEASE),
            waker=consumers.wakeups(topics).waker(),
            host=identity.machine,
            poll=SLOW_POLL,
            metrics=metrics.sessions,
        )

    channels = {events.ChannelTaken.TOPIC, events.ChannelReleased.TOPIC}
    return [worker(encoders, CONSUMER, topics=channels), worker(pushes, PUSHES, topics={Publication.KIND})]

"""The role `deliveries`: sends the deliveries of webhooks and callbacks."""

from __future__ import annotations

from collections.abc import Sequence
from random import SystemRandom

from domain.kernel.clock import Clock
from projections.kernel.database.database import Database
from projections.kernel.tracing import Tracer
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault
from projections.webhook.keys import SHARDS
from projections.webhook.store import CONSUMER
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.settings import Identity
from workers.kernel.worker import Worker
from workers.ports.outbound import Notifying
from workers.webhook.sender.disabling import Disabling
from workers.webhook.sender.fanout import SenderWakeup
from workers.webhook.sender.sender import Sender


def deliveries(
    consumers: ConsumerFactory,
    database: Database,
    *,
    outbound: Notifying,
    records: RecordQueries,
    vault: Vault,
    disabling: Disabling,
    wakeup: SenderWakeup,
    identity: Identity,
    clock: Clock,
    metrics: WorkerMetrics,
    tracer: Tracer,
) -> Sequence[Worker]:
    sender = Sender(
        database,
        outbound,
        records=records,
        vault=vault,
        leases=consumers.leases(CONSUMER, shards=SHARDS),
        disable=disabling.disable,
        version=identity.version,
        clock=clock,
        rng=SystemRandom(),
        metrics=metrics,
        tracer=tracer,
    )
    wakeup.connect(sender.wake)
    return [sender]

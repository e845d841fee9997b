"""The role `prober`: takes samples of publishing points."""

from __future__ import annotations

from collections.abc import Sequence

from domain.channel.hosts import ProvisionedHosts
from domain.kernel.ids import new_id
from projections.kernel.database.database import Database
from projections.publishing_point.points import ChannelPointsReader
from projections.publishing_point.samples import CONSUMER, Samples
from workers.health.prober import SHARDS, PointKeys, Prober
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.wakeups import Waker
from workers.kernel.worker import Worker
from workers.ports.points import PointStatuses


def prober(
    consumers: ConsumerFactory,
    database: Database,
    *,
    channels: ChannelPointsReader,
    hosts: ProvisionedHosts,
    keys: PointKeys,
    statuses: PointStatuses,
    metrics: WorkerMetrics,
) -> Sequence[Worker]:
    member = new_id()
    return [
        Prober(
            Samples(database, member=member),
            channels,
            hosts=hosts,
            keys=keys,
            statuses=statuses,
            leases=consumers.leases(CONSUMER, shards=SHARDS, member=member),
            waker=Waker(),
            metrics=metrics.points,
        )
    ]

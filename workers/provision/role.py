"""The role `provisioning`: provisions and terminates the infrastructure of Events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from domain.kernel.mapper import EventMapper
from domain.provision.aggregate import ProvisionInfo
from domain.provision.handlers import ProvisionHandlers
from projections.kernel.database.database import Database
from projections.log.streams import Streams
from projections.log_store.log_store import Logbook
from projections.provision.queries import ProvisionQueries
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.wakeups import SLOW_POLL
from workers.kernel.worker import Worker
from workers.ports.provisioners import Provisioners
from workers.provision.callbacks import CallbackListener
from workers.provision.policy import EndingOrders, ProvisioningOrders
from workers.provision.reconciler import CONSUMER, SHARDS, Reconciler

_AT_ONCE: Final = 4


def provisioning(
    consumers: ConsumerFactory,
    database: Database,
    *,
    provisions: ProvisionQueries,
    handlers: ProvisionHandlers,
    provisioners: Provisioners,
    endings: EndingOrders,
    streams: Streams,
    mapper: EventMapper,
    logbook: Logbook,
    metrics: WorkerMetrics,
) -> Sequence[Worker]:
    """Return the reconciler, and the workers for the rules of profiles that end resources when an Event enters a state."""
    reconciler = Reconciler(
        provisions,
        handlers,
        provisioners=provisioners.by_deployment,
        logbook=logbook,
        metrics=metrics.provisions,
        leases=consumers.leases(CONSUMER, shards=SHARDS),
        waker=consumers.wakeups({ProvisionInfo.KIND}).waker(),
        at_once=_AT_ONCE,
        poll=SLOW_POLL,
    )
    orders = partial(ProvisioningOrders, streams, mapper=mapper)
    return [
        reconciler,
        CallbackListener(database, provisioners.hurry),
        *consumers.with_orders(orders, endings.carry_out, on_air=True),
    ]

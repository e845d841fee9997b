"""The role `timekeeper`: starts, stops, publishes and withdraws Events by their schedule, and has their infrastructure provisioned
and terminated and their films made."""

from __future__ import annotations

from collections.abc import Sequence

from domain.composition.handlers import CompositionHandlers
from domain.event.on_air_handlers import OnAirHandlers
from domain.kernel.ports import Executor, ServiceNotes
from domain.provision.handlers import ProvisionHandlers
from projections.event.due_events import DueEvents
from projections.kernel.database.database import Database
from workers.event.timekeeper import CHANGES_TIMES, CONSUMER, Timekeeper
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.wakeups import SLOW_POLL
from workers.kernel.worker import Worker


def timekeeper(
    consumers: ConsumerFactory,
    database: Database,
    *,
    executor: Executor,
    on_air: OnAirHandlers,
    provisions: ProvisionHandlers,
    compositions: CompositionHandlers,
    notes: ServiceNotes,
    metrics: WorkerMetrics,
) -> Sequence[Worker]:
    timekeeper = Timekeeper(
        DueEvents(database),
        executor,
        on_air=on_air,
        provisions=provisions,
        compositions=compositions,
        notes=notes,
        leases=consumers.leases(CONSUMER),
        waker=consumers.wakeups(CHANGES_TIMES).waker(),
        metrics=metrics,
        poll=SLOW_POLL,
    )
    return [timekeeper]

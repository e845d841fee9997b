"""The timekeeper: starts and stops Events by their schedule, and has their infrastructure provisioned and terminated and their
films made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.wiring.room import Room, WorkerRole
from domain.composition.aggregate import Composition
from domain.event.aggregate import MediaEvent
from domain.kernel.ids import new_id

if TYPE_CHECKING:
    from workers.wiring import SharedWorkers, Worker, WorkerContext


def _timekeeper(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from api.wiring.rooms.composition import composition_handlers
    from api.wiring.rooms.provision import provision_handlers
    from projections.consumers.leases import ShardLeases
    from projections.event.due import DueEvents
    from workers.event.timekeeper import CHANGES_TIMES, CONSUMER, Timekeeper
    from workers.kernel.wakeups import Waker, WakeupHub

    waker = Waker()
    wakeups = WakeupHub(context.signal(frozenset({MediaEvent.KIND, Composition.KIND}), topics=CHANGES_TIMES, on_air=True))
    wakeups.follow(lambda streams: waker.wake() if streams else None)
    leases = ShardLeases(context.database, CONSUMER, shards=1, member=new_id(), host=context.host, reads_log=False)
    timekeeper = Timekeeper(
        DueEvents(context.database),
        context.executor,
        provisions=provision_handlers(context),
        compositions=composition_handlers(context),
        notes=context.logbook,
        leases=leases,
        waker=waker,
        metrics=context.metrics,
    )
    return [wakeups, timekeeper]


TIMEKEEPER = Room(name="timekeeper", worker_roles=(WorkerRole("timekeeper", _timekeeper),))

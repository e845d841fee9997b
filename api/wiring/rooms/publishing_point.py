"""Publishing points of live Events: their samples, and the prober that takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.wiring.container import Providers, Services
from api.wiring.room import Room, WorkerRole
from domain.kernel.ids import new_id
from projections.kernel.database.database import Database
from projections.kernel.schema.migrate import Migration
from projections.provision.queries import ProvisionQueries
from projections.publishing_point.own_points import LostRecordings, remove_lost_recordings
from projections.publishing_point.points import ChannelPointsReader
from projections.publishing_point.queries import PointStates
from projections.publishing_point.samples import CONSUMER
from projections.record.queries import RecordQueries

if TYPE_CHECKING:
    from fastapi import APIRouter

    from workers.retention import Removal
    from workers.wiring import SharedWorkers, Worker, WorkerContext


def _routes() -> Sequence[APIRouter]:
    from api.media import live_streams

    return (live_streams.routes,)


def _services(services: Services) -> Providers:
    from api.media.live_streams import LiveStreams

    get = services.get
    return {
        LostRecordings: lambda: LostRecordings(get(Database)),
        PointStates: lambda: PointStates(get(Database)),
        ChannelPointsReader: lambda: ChannelPointsReader(get(Database), get(RecordQueries)),
        LiveStreams: lambda: LiveStreams(get(PointStates), get(ChannelPointsReader), hosts=get(ProvisionQueries)),
    }


def _prober(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from projections.consumers.leases import ShardLeases
    from projections.publishing_point.samples import Samples
    from workers.adapters.point_status.strategies import point_status
    from workers.health.prober import SHARDS, PointKeys, Prober
    from workers.kernel.wakeups import Waker

    member = new_id()
    return [
        Prober(
            Samples(context.database, member=member),
            ChannelPointsReader(context.database, context.records),
            hosts=ProvisionQueries(context.database),
            keys=PointKeys(context.vault),
            statuses=point_status(context.outbound, context.clock),
            leases=ShardLeases(context.database, CONSUMER, shards=SHARDS, member=member, host=context.host, reads_log=False),
            waker=Waker(),
            metrics=context.metrics.points,
        )
    ]


def _removals() -> Sequence[Removal]:
    from workers.retention import Removal

    return [Removal("lost recordings", "session_days", remove_lost_recordings)]


PUBLISHING_POINTS = Room(
    name="publishing_points",
    migrations=(
        Migration.read("0017 publishing points", "publishing_point/schema.sql"),
        Migration.read("0056 lost recordings", "publishing_point/lost_recordings.sql"),
    ),
    removals=_removals,
    routes=_routes,
    services=_services,
    worker_roles=(WorkerRole("prober", _prober),),
)

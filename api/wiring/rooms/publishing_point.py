"""Publishing points of live Events: their samples, and the prober that takes them."""

from __future__ import annotations

from api.wiring.room import Room, WorkerRole
from domain.channel.handlers import PointOwners
from projections.kernel.schema.migrate import Migration
from projections.publishing_point import own_points
from workers.retention import Removal

PUBLISHING_POINTS = Room(
    name="publishing_points",
    migrations=(
        Migration.read("0017 publishing points", "publishing_point/schema.sql"),
        Migration.read("0056 lost recordings", "publishing_point/lost_recordings.sql"),
    ),
    removals=(Removal("lost recordings", "session_days", own_points.remove_lost_recordings),),
    routes=("api.media.live_streams:routes",),
    services={
        PointOwners: own_points.StoredPointOwners,
        own_points.StoredPointOwners: "api.wiring.providers:point_owners",
        "workers.ports.points:PointStatuses": "api.wiring.providers:point_statuses",
    },
    worker_roles=(WorkerRole("prober", "workers.health.role:prober"),),
)

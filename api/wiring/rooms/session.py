"""Sessions: work that runs until it is stopped, such as the encoders of a channel."""

from __future__ import annotations

from api.wiring.room import Room, WorkerRole
from projections.kernel.schema.migrate import Migration
from projections.session.store import remove_ended_sessions
from workers.retention import Removal

SESSIONS = Room(
    name="sessions",
    migrations=(
        Migration.read("0016 sessions", "session/schema.sql"),
        Migration.read("0025 places of sessions", "session/place.sql"),
    ),
    routes=("api.media.live_sessions:routes",),
    removals=(Removal("ended sessions", "session_days", remove_ended_sessions),),
    services={
        "workers.adapters.item_cache:ItemCache": "api.wiring.providers:item_cache",
        "workers.session.encoders:EncoderSessions": "api.wiring.providers:encoder_sessions",
        "workers.session.playouts:Playouts": "api.wiring.providers:playouts",
    },
    worker_roles=(
        WorkerRole("sessions", "workers.session.role:sessions", needs=("workers.job.transcoder_check:TranscoderCheck",)),
    ),
)

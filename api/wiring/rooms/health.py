"""The health of the machine: versions, free space, the transcoder."""

from __future__ import annotations

from api.wiring.room import Room
from workers.ports.media import Transcoder

HEALTH = Room(
    name="health",
    routes=("api.media.health:routes", "api.media.health_overview:routes", "api.media.live_health:routes"),
    services={
        Transcoder: "api.wiring.providers:transcoder",
        "workers.adapters.free_space:FreeSpace": "api.wiring.providers:free_space",
    },
)

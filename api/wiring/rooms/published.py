"""Published media for players: the files of the media root, and the built-in origin of live streams."""

from __future__ import annotations

from api.wiring.room import Room
from domain.kernel.media_files import MediaFiles
from workers.ports.media import MediaSource

PUBLISHED = Room(
    name="published",
    routes=("api.published.routes:routes",),
    services={MediaFiles: "api.wiring.providers:media_store", MediaSource: "api.wiring.providers:media_source"},
)
ORIGIN = Room(name="origin", routes=("api.origin.ingest:routes", "api.origin.routes:routes"))

"""The free space of a process's directories, which the breaker of its database names as the cause of an outage."""

from __future__ import annotations

from api.wiring.core import Core
from api.wiring.settings import Settings
from workers.adapters.free_space import FreeSpace


def free_space(core: Core, settings: Settings) -> FreeSpace:
    directories = {"home": settings.home, "media": settings.media_directory}
    if settings.database_url is None:
        directories["database"] = settings.home / "postgres"
    space = FreeSpace(directories, registry=core.registry)
    core.database.availability.explain = space.shortage
    return space

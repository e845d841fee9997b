"""The free space of a process's directories, which the breaker of its database names as the cause of an outage."""

from __future__ import annotations

from pathlib import Path

from api.wiring.core import Core
from api.wiring.settings import Settings
from workers.adapters.free_space import FreeSpace


def directories(settings: Settings) -> dict[str, Path]:
    """The directories that this process fills, by their names."""
    found = {"home": settings.home, "media": settings.media_directory}
    return found if settings.database_url is not None else found | {"database": settings.home / "postgres"}


def free_space(core: Core, settings: Settings) -> FreeSpace:
    space = FreeSpace(directories(settings), registry=core.registry)
    core.database.availability.explain = space.shortage
    return space

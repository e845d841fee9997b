"""The free space of a process's directories, which the breaker of its database reports as the cause of an outage."""

from __future__ import annotations

from pathlib import Path

from api.wiring.core import Core
from api.wiring.settings import Settings
from workers.adapters.free_space import FreeSpace


def directories(settings: Settings) -> dict[str, Path]:
    """Return the directories that this process fills, by their names."""
    directories_by_name = {"home": settings.home, "media": settings.media_directory}
    return (
        directories_by_name if settings.database_url is not None else directories_by_name | {"database": settings.home / "postgres"}
    )


def free_space(core: Core, settings: Settings) -> FreeSpace:
    space = FreeSpace(directories(settings), registry=core.registry)
    core.database.availability.explain = space.shortage
    return space

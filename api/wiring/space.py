"""The free space of a process's directories, which the breaker of its database reports as the cause of an outage."""

from __future__ import annotations

from api.wiring.core import Core
from api.wiring.parts import Directories
from workers.adapters.free_space import FreeSpace


def free_space(core: Core, directories: Directories) -> FreeSpace:
    space = FreeSpace(directories.paths, registry=core.registry)
    core.database.availability.explain = space.shortage
    return space

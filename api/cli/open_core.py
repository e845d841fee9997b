"""The core for a short command: an open database with the current schema, and the services that read and write the log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from api.cli.database import open_database
from api.wiring.core import Core, core, prepare
from api.wiring.settings import Settings


@asynccontextmanager
async def open_core(settings: Settings, *, make: bool = False) -> AsyncIterator[Core]:
    """Yield the started core. With `make`, a missing or empty database is created."""
    async with open_database(settings, make=make) as database:
        wired = core(database.url, role=await prepare(database.url, owner=database.owner))
        try:
            await wired.start()
            yield wired
        finally:
            await wired.stop()

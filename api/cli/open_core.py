"""The core for a short command: an open database with the current schema, and what reads and writes the log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from api.cli.database import open_database
from api.wiring.core import Core, core, prepare
from api.wiring.settings import Settings


@asynccontextmanager
async def open_core(settings: Settings, *, make: bool = False) -> AsyncIterator[Core]:
    """`make`: a database that is missing or empty is made."""
    async with open_database(settings, make=make) as found:
        wired = core(found.url, role=await prepare(found.url, owner=found.owner))
        try:
            await wired.start()
            yield wired
        finally:
            await wired.stop()

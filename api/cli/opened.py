"""The log for a short command: whatever database is at hand, migrated, with everything that reads and writes it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from api.cli.database import at_hand
from api.wiring.core import Core, core, prepare
from api.wiring.settings import Settings


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Core]:
    async with at_hand(settings) as found:
        wired = core(found.url, role=await prepare(found.url))
        try:
            await wired.start()
            yield wired
        finally:
            await wired.stop()

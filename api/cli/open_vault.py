"""The core and the vault for a short command that decrypts or encrypts secrets. It needs the master key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from api.cli.database import open_database
from api.wiring.core import Core
from api.wiring.settings import Settings
from api.wiring.workers import prepared_core
from projections.vault.vault import Vault


@asynccontextmanager
async def open_vault(settings: Settings) -> AsyncIterator[tuple[Core, Vault]]:
    async with open_database(settings) as database:
        wired = await prepared_core(database.url, settings.master_key_file, owner=database.owner)
        try:
            await wired.start()
            yield wired, Vault(wired.database, wired.ring.cipher)
        finally:
            await wired.stop()

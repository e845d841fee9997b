"""The log for a short command that opens or makes secrets: as `opened`, with the vault. It needs the master key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from api.cli.database import at_hand
from api.core import Core
from api.settings import Settings
from api.wiring import ground
from domain.kernel.sealed import Sealer
from projections.vault.vault import Vault
from workers.adapters.keyfiles import master_key, previous_master_key


@asynccontextmanager
async def unlocked(settings: Settings) -> AsyncIterator[tuple[Core, Vault]]:
    path = settings.master_key_file
    key, previous = master_key(path), previous_master_key(path)
    async with at_hand(settings) as found:
        wired = await ground(found.url, key, previous=previous)
        try:
            await wired.start()
            yield wired, Vault(wired.database, Sealer(key, previous=previous))
        finally:
            await wired.stop()

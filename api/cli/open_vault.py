"""The core and the vault for a short command that decrypts or encrypts secrets. It needs the master key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from api.cli.database import open_database
from api.wiring.core import Core
from api.wiring.settings import Settings
from api.wiring.workers import prepared
from domain.kernel.encryption import SecretCipher
from projections.vault.vault import Vault
from workers.adapters.keyfiles import master_key, previous_master_key


@asynccontextmanager
async def open_vault(settings: Settings) -> AsyncIterator[tuple[Core, Vault]]:
    path = settings.master_key_file
    key, previous = master_key(path), previous_master_key(path)
    async with open_database(settings) as found:
        wired = await prepared(found.url, key, owner=found.owner, previous=previous)
        try:
            await wired.start()
            yield wired, Vault(wired.database, SecretCipher(key, previous=previous))
        finally:
            await wired.stop()

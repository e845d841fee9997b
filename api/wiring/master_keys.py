"""The master keys of a process: those of its key files, checked against the database."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from api.wiring.startup import LOST_KEY, StartError
from domain.kernel.encryption import KeyRing
from projections.kernel.database.database import Database
from projections.vault.master_keys import master_key_fits, named_keys
from workers.adapters.keyfiles import (
    first_master_key,
    has_master_key,
    master_key,
    previous_master_key,
    readable_master_keys,
    remove_master_key,
)

_MISSING: Final = (
    "there is no master key at {} (MEDIALEDGER_MASTER_KEY_FILE), and this database is encrypted with one: put a copy of it there; "
    f"{LOST_KEY}"
)
_ANOTHER: Final = (
    f"the master key {{}} is not the key that this database was encrypted with; check MEDIALEDGER_MASTER_KEY_FILE; {LOST_KEY}"
)


def key_ring(path: Path) -> KeyRing:
    """Return the keys at `path` and next to it. The ring reads them again when one is missing."""
    return KeyRing(master_key(path), previous=previous_master_key(path), read=partial(readable_master_keys, path))


async def fitting_keys(database: str, path: Path) -> KeyRing:
    """Return the keys of a migrated database. A new key is created only for a database that contains no secrets yet. Raise
    `StartError` if the file is missing or has another key: nothing could be decrypted, and new secrets would be lost at the next
    start."""
    async with Database(database, size=1) as pool:
        made = not has_master_key(path)
        if made and await named_keys(pool) is not None:
            raise StartError(_MISSING.format(path))
        first_master_key(path)
        ring = key_ring(path)
        if not await master_key_fits(pool, ring):
            if made:  # another machine created its key first
                remove_master_key(path)
            raise StartError(_ANOTHER.format(path))
        return ring

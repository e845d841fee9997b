"""The record of the master keys that the vault is encrypted with."""

from __future__ import annotations

from projections.kernel.database import Database


async def master_key_fits(database: Database, fingerprint: str, *, previous: str | None = None) -> bool:
    """Whether the keys of these fingerprints can decrypt the whole vault. A new database takes the first key that comes.

    While a key is replaced (projections/vault/rotation.py) both are needed, the new one and the previous one."""
    await database.execute("INSERT INTO master_keys (fingerprint) VALUES (%s) ON CONFLICT DO NOTHING", (fingerprint,))
    row = await database.row("SELECT fingerprint, previous FROM master_keys")
    return row is not None and {known for known in row if known is not None} <= {fingerprint, previous}

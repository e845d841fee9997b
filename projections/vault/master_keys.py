"""The record of the master keys that encrypt the vault, and how running processes follow it.

While a master key is replaced (projections/vault/rotation.py) the database names two. A process that lacks one reads its key files
again. It keeps encrypting with the previous key until every process has both.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final

from domain.kernel.encryption import KeyRing
from projections.kernel.background_task import RepeatedMessage
from projections.kernel.database.arrays import texts
from projections.kernel.database.database import Database, Pool
from projections.kernel.sql.distinct import distinct

_log = logging.getLogger(__name__)

MOST_COUNTED: Final = 10_000

_REPLACED: Final = """
UPDATE master_keys SET fingerprint = %s, previous = NULL, previous_encrypts = false, begun_at = NULL, switched_at = NULL
"""
_FIRST: Final = "INSERT INTO master_keys (fingerprint) VALUES (%s) ON CONFLICT DO NOTHING"
_IDS: Final = """
INSERT INTO master_key_ids (fingerprint, key_id) SELECT k.* FROM unnest(%s::text[], %s::text[]) AS k (fingerprint, key_id)
WHERE NOT EXISTS (SELECT FROM master_key_ids i WHERE i.fingerprint = k.fingerprint) ON CONFLICT DO NOTHING
"""
_NAMED: Final = "SELECT fingerprint, previous, previous_encrypts FROM master_keys"
UNREADABLE: Final = f"""
WITH named AS (
    SELECT i.key_id FROM master_keys m CROSS JOIN unnest(ARRAY[m.fingerprint, m.previous]) AS n (fingerprint)
    LEFT JOIN master_key_ids i ON i.fingerprint = n.fingerprint WHERE n.fingerprint IS NOT NULL
)
SELECT coalesce(sum((SELECT count(*) FROM (SELECT FROM vault WHERE key_id = k.value LIMIT {MOST_COUNTED}) AS counted)), 0)::bigint
FROM ({distinct("key_id", table="vault")}) AS k
WHERE EXISTS (SELECT FROM named) AND NOT EXISTS (SELECT FROM named WHERE key_id IS NULL OR key_id = k.value)
"""
"""A query for the number of secrets that fit no master key of the database, counted up to `MOST_COUNTED` for each other key. It
takes a few look-ups in an index; nothing is decrypted."""
_FRESH: Final = 10.0


@dataclass(frozen=True, slots=True)
class NamedKeys:
    """The fingerprints of the master keys that the database uses. While `previous_encrypts`, some process does not have the new key
    yet."""

    present: str
    previous: str | None
    previous_encrypts: bool

    @property
    def all(self) -> frozenset[str]:
        return frozenset(name for name in (self.present, self.previous) if name is not None)

    @property
    def encrypting(self) -> str:
        """The key that encrypts new secrets."""
        return self.previous if self.previous is not None and self.previous_encrypts else self.present


async def named_keys(database: Pool) -> NamedKeys | None:
    """Return the keys that the database uses; None if no process with a key has used it yet."""
    row = await database.row(_NAMED)
    return None if row is None else NamedKeys(*row)


async def master_key_fits(database: Pool, ring: KeyRing) -> bool:
    """Return True if these keys can decrypt the whole vault. A new database accepts the first key.

    While a key is replaced both are needed, the new one and the previous one.
    """
    await database.execute(_FIRST, (ring.fingerprints[0],))
    await write_down(database, ring)
    named = await named_keys(database)
    return named is not None and named.all <= set(ring.fingerprints)


async def replace_lost_key(owner: Database, ring: KeyRing) -> None:
    """Make the database use this key from now on, and no other. Secrets under a lost key stay as they are."""
    await write_down(owner, ring)
    await owner.execute(_REPLACED, (ring.fingerprints[0],))


async def write_down(database: Pool, ring: KeyRing) -> None:
    """Store how secrets name these keys. The database refuses secrets under others."""
    await database.execute(_IDS, (texts(list(ring.key_ids)), texts(list(ring.key_ids.values()))))


async def unreadable_secrets(database: Pool) -> int:
    """Return the number of secrets that fit no master key of the database (`UNREADABLE`)."""
    row = await database.row(UNREADABLE)
    return int(row[0]) if row is not None else 0


class ProcessKeys:
    """The keys of this process, kept in step with the database. `follow` is called with each heartbeat."""

    def __init__(self, database: Database, ring: KeyRing) -> None:
        self._database = database
        self.ring = ring
        self._missing = RepeatedMessage()
        self.fit = True
        """True if the process has the key that encrypts new secrets."""

    @property
    def fingerprints(self) -> Sequence[str]:
        """The fingerprints of the keys; the first key encrypts."""
        return self.ring.fingerprints

    async def follow(self) -> None:
        named = await named_keys(self._database)
        if named is None:
            return
        if not named.all <= set(self.fingerprints) and self.ring.look():
            _log.info("switched to another master key")
        if self._fits(named) and named.encrypting != self.fingerprints[0]:
            self.ring.encrypt_with(named.encrypting)
            await write_down(self._database, self.ring)
            _log.info("secrets are encrypted with the master key %s from now on", named.encrypting)

    def _fits(self, named: NamedKeys) -> bool:
        lacking = sorted(named.all - set(self.fingerprints))
        if lacking and self._missing.due(" ".join(lacking)):
            _log.error(
                "this process lacks the master key %s that the database uses: put the key files of the machine where "
                "`medialedger keys rotate` was run in their place here; no restart is needed",
                " and ".join(lacking),
            )
        self.fit = named.encrypting in self.fingerprints
        return self.fit


class VaultState:
    """The state of the vault for this process: whether it can encrypt secrets, and the number of secrets that cannot be decrypted.

    The database is queried at most every few seconds, because probes need no API key.
    """

    def __init__(self, database: Pool, keys: ProcessKeys | None, *, fresh: float = _FRESH) -> None:
        self._database = database
        self._keys = keys
        self._fresh = fresh
        self._read = (float("-inf"), 0)

    @property
    def fit(self) -> bool:
        """True if the process has the key that encrypts new secrets."""
        return self._keys is None or self._keys.fit

    async def unreadable(self) -> int:
        read_at, count = self._read
        if monotonic() - read_at >= self._fresh:
            count = await unreadable_secrets(self._database)
            self._read = (monotonic(), count)
        return count

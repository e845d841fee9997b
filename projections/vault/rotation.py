"""Rotation of the master key: encrypts every secret in the vault under a new key, while the product runs:
docs/how-to/rotate-the-master-key.md.

`begin` records that the database uses two keys; from then on a process with only one of them refuses to start. `run` encrypts in
small batches, each committed by itself, and deletes the record of the old key when no secret is left under it. After a crash it
continues when it is run again: the key id of each secret tells which key it is under. Meanwhile a process with both keys can
decrypt every secret, and encrypts new ones under the new key.

Events do not change: they hold references, which stay, and fingerprints made with the old key. A secret that is sent again after a
rotation therefore counts as a new one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from domain.kernel.encryption import NONCE_BYTES, DecryptionFailed, EncryptedSecret, SecretCipher
from domain.kernel.errors import Refused
from projections.kernel.arrays import byte_strings, texts, uuids
from projections.kernel.database import Database

BATCH = 500

_BEGIN = """
INSERT INTO master_keys (fingerprint) VALUES (%(new)s) ON CONFLICT (only_row) DO UPDATE
SET fingerprint = %(new)s, previous = %(old)s, begun_at = clock_timestamp()
WHERE master_keys.fingerprint = %(old)s AND master_keys.previous IS NULL
"""
_OLDER = """
SELECT count(*) FROM pg_stat_activity a, master_keys s
WHERE a.datname = current_database() AND a.application_name = 'medialedger appender' AND a.backend_start < s.begun_at
"""
_DUE = """
SELECT reference, owner, key_id, fingerprint, nonce, ciphertext FROM vault
WHERE key_id <> %s AND reference > %s ORDER BY reference LIMIT %s
"""
_REENCRYPT = """
UPDATE vault SET key_id = n.key_id, fingerprint = n.fingerprint, nonce = n.nonce, ciphertext = n.ciphertext
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::text[], %s::bytea[], %s::bytea[])
    AS n(reference, was, key_id, fingerprint, nonce, ciphertext)
WHERE vault.reference = n.reference AND vault.key_id = n.was
"""
_DONE = """
UPDATE master_keys SET previous = NULL, begun_at = NULL
WHERE previous IS NOT NULL AND NOT EXISTS (SELECT FROM vault WHERE key_id <> %s)
"""
_FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Fingerprints of the old and the new master key, as in the table `master_keys`."""

    old: str
    new: str


class Rotation:
    """One replacement of the master key. `cipher` encrypts with the new key and decrypts with both.

    The connection must be that of the schema's owner: PostgreSQL hides the connections of others from the application's role."""

    def __init__(self, database: Database, *, cipher: SecretCipher, fingerprints: Fingerprints, batch: int = BATCH) -> None:
        self._database = database
        self._cipher = cipher
        self._fingerprints = fingerprints
        self._batch = batch

    async def begin(self) -> int:
        """Record that both keys are in use; gives how many processes were started before that and may have only the old key.

        These must be restarted before `run`. (A process that has reconnected since looks restarted.) Raises `Refused` when the
        database uses other keys."""
        await self._database.execute(_BEGIN, {"new": self._fingerprints.new, "old": self._fingerprints.old})
        row = await self._database.row("SELECT fingerprint, previous FROM master_keys")
        if row is None or row[0] != self._fingerprints.new or row[1] not in (None, self._fingerprints.old):
            raise Refused("the database does not use this master key")
        older = await self._database.row(_OLDER)
        return int(older[0]) if older else 0

    async def run(self, progress: Callable[[int], None]) -> int:
        """Encrypt all secrets under the new key that are not; gives how many. Secrets that another process encrypts with the old
        key meanwhile are found too: it ends when none is left.

        Raises `Refused` when some secrets can be decrypted with neither key. All others are then under the new key, and the old
        key is still recorded."""
        count, done = 0, False
        while not done:
            unreadable: set[UUID] = set()
            encrypted = await self._pass(progress, before=count, unreadable=unreadable)
            count += encrypted
            if unreadable and not encrypted:
                raise Refused(f"{len(unreadable)} secrets, such as {min(unreadable)}, fit neither master key; the others are done")
            done = not encrypted and await self._ended()
        return count

    async def _ended(self) -> bool:
        """Delete the record of the old key, unless secrets were encrypted with it since the last pass."""
        await self._database.execute(_DONE, (self._cipher.key_id,))
        row = await self._database.row("SELECT previous FROM master_keys")
        return row is None or row[0] is None

    async def _pass(self, progress: Callable[[int], None], *, before: int, unreadable: set[UUID]) -> int:
        """One pass over the vault; gives how many secrets were encrypted. `unreadable` collects those that cannot be decrypted."""
        last, count = _FIRST, 0
        while rows := await self._database.rows(_DUE, (self._cipher.key_id, last, self._batch)):
            due = [EncryptedSecret(*row) for row in rows]
            last = due[-1].reference
            count += await self._encrypt(due, unreadable)
            progress(before + count)
        return count

    async def _encrypt(self, due: Sequence[EncryptedSecret], unreadable: set[UUID]) -> int:
        pairs: list[tuple[EncryptedSecret, EncryptedSecret]] = []
        for old in due:
            try:
                secret = self._cipher.decrypt(old)
            except DecryptionFailed:
                unreadable.add(old.reference)
                continue
            nonce = os.urandom(NONCE_BYTES)
            pairs.append((old, self._cipher.encrypt(secret, owner=old.owner, reference=old.reference, nonce=nonce)))
        if not pairs:
            return 0
        return await self._database.execute(
            _REENCRYPT,
            (
                uuids([new.reference for _, new in pairs]),
                texts([old.key_id for old, _ in pairs]),
                texts([new.key_id for _, new in pairs]),
                texts([new.fingerprint for _, new in pairs]),
                byte_strings([new.nonce for _, new in pairs]),
                byte_strings([new.ciphertext for _, new in pairs]),
            ),
        )

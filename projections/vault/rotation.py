"""Rotation of the master key: encrypts every secret in the vault under a new key, while the product runs. See
docs/how-to/rotate-the-master-key.md and docs/adr/0089-the-master-key-is-replaced-while-the-product-runs.md.

`begin` records that the database uses two keys. From then on a process that has only one of them does not start, and a running
process reads its key files again. All keep encrypting with the old key. Once every living process has both, `switch` records that
the new key encrypts from now on. Once all encrypt with it, `run` encrypts the old secrets again, in small batches that are
committed separately, and deletes the record of the old key when no secret is left under it. The database refuses a secret under a
key that it does not name, so nothing is encrypted with the old key afterwards.

After a crash it continues when it is run again: the key id of each secret tells which key encrypts it. Events do not change: they
hold references, which stay, and fingerprints made with the old key. A secret that is sent again after a rotation therefore counts
as a new one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from domain.kernel.encryption import NONCE_BYTES, EncryptedSecret, KeyRing
from domain.kernel.errors import DecryptionFailed, Refused
from projections.kernel.database.arrays import byte_strings, texts, uuids
from projections.kernel.database.database import Database
from projections.kernel.schema.builds import LivingProcess, living
from projections.vault.master_keys import named_keys, write_down

BATCH: Final = 500
SETTLE: Final = 10.0
"""The number of seconds from the switch to the end of a rotation, if processes run. By then they have written what they had
encrypted before."""
_POLL: Final = 0.5

_BEGIN = """
INSERT INTO master_keys (fingerprint) VALUES (%(new)s) ON CONFLICT (only_row) DO UPDATE
SET fingerprint = %(new)s, previous = %(old)s, previous_encrypts = true, begun_at = clock_timestamp(), switched_at = NULL
WHERE master_keys.fingerprint = %(old)s AND master_keys.previous IS NULL
"""
_SWITCH = """
UPDATE master_keys SET previous_encrypts = false, switched_at = clock_timestamp() WHERE previous IS NOT NULL AND previous_encrypts
"""
_DUE = """
SELECT reference, owner, key_id, fingerprint, nonce, ciphertext FROM vault
WHERE key_id = %s AND reference > %s ORDER BY reference LIMIT %s
"""
_REENCRYPT = """
UPDATE vault SET key_id = n.key_id, fingerprint = n.fingerprint, nonce = n.nonce, ciphertext = n.ciphertext
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::text[], %s::bytea[], %s::bytea[])
    AS n(reference, was, key_id, fingerprint, nonce, ciphertext)
WHERE vault.reference = n.reference AND vault.key_id = n.was
"""
# The lock is taken first, in a separate statement: it waits for secrets that are being written, and the next statement sees them.
_LOCK = "SELECT FROM master_keys FOR UPDATE"
_DONE = """
UPDATE master_keys SET previous = NULL, begun_at = NULL, switched_at = NULL
WHERE previous IS NOT NULL AND NOT previous_encrypts AND NOT EXISTS (SELECT FROM vault WHERE key_id = %(old)s)
    AND (switched_at IS NULL OR switched_at <= clock_timestamp() - make_interval(secs => %(settle)s))
"""
_FORGOTTEN = "DELETE FROM master_key_ids i USING master_keys m WHERE i.fingerprint NOT IN (m.fingerprint, coalesce(m.previous, ''))"
_NOTHING = UUID(int=0)

ReportWaiting = Callable[[Sequence[LivingProcess]], None]


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Fingerprints of the old and the new master key, as in the table `master_keys`."""

    old: str
    new: str


class Rotation:
    """A replacement of the master key. `ring` holds both keys, and encrypts with the new one.

    The connection must be that of the schema's owner: the role of the application may not change which keys are used.
    """

    def __init__(self, database: Database, *, ring: KeyRing, old: str, batch: int = BATCH, settle: float = SETTLE) -> None:
        self._database = database
        self._ring = ring
        self._fingerprints = Fingerprints(old=old, new=ring.fingerprints[0])
        self._old_id = ring.key_ids[old]
        self._batch = batch
        self._settle = settle

    async def begin(self) -> None:
        """Record that both keys are in use, and that the old one encrypts. Raise `Refused` if the database uses other keys."""
        names = self._fingerprints
        await write_down(self._database, self._ring)
        await self._database.execute(_BEGIN, {"new": names.new, "old": names.old})
        named = await named_keys(self._database)
        if named is None or named.present != names.new or named.previous not in (None, names.old):
            raise Refused("the database does not use this master key")

    async def switch(self, waiting: ReportWaiting) -> None:
        """Wait until every process has both keys, then until every process encrypts with the new one.

        `waiting` is called with the processes that have not done so, whenever they change.
        """
        await self._until(lambda process: set(self._ring.fingerprints) <= set(process.master_keys or ()), waiting)
        await self._database.execute(_SWITCH)
        await self._until(lambda process: (process.master_keys or [""])[0] == self._fingerprints.new, waiting)

    async def _until(self, ready: Callable[[LivingProcess], bool], waiting: ReportWaiting) -> None:
        """Wait for all processes except those without any key."""
        reported: Sequence[object] = ()
        while unready := [process for process in await self._processes() if not ready(process)]:
            now = [(process.host, process.pid, process.master_keys) for process in unready]
            if now != reported:
                waiting(unready)
                reported = now
            await asyncio.sleep(_POLL)

    async def _processes(self) -> Sequence[LivingProcess]:
        """Return the processes that encrypt or decrypt, or are too old to report their keys."""
        return [process for process in await living(self._database) if process.master_keys != []]

    async def run(self, progress: Callable[[int], None]) -> int:
        """Encrypt all secrets of the old key with the new one, and return their number. Secrets that a process encrypted with the
        old key before it switched are included: the loop ends when none is left.

        Raise `Refused` if some of them cannot be decrypted. All others are then under the new key, and the old key is still
        recorded. Secrets under a third key stay as they are.
        """
        count, done = 0, False
        settle = self._settle if await self._processes() else 0.0
        while not done:
            unreadable: set[UUID] = set()
            encrypted = await self._pass(progress, before=count, unreadable=unreadable)
            count += encrypted
            if unreadable and not encrypted:
                raise Refused(f"{len(unreadable)} secrets, such as {min(unreadable)}, were damaged; all others are done")
            done = not encrypted and await self._ended(settle)
            if not encrypted and not done:
                await asyncio.sleep(_POLL)
        return count

    async def _ended(self, settle: float) -> bool:
        """Delete the record of the old key, unless secrets were encrypted with it since the last pass. Return True if it is
        deleted."""
        async with self._database.connection() as connection, connection.transaction():
            await connection.execute(_LOCK)
            await connection.execute(_DONE, {"old": self._old_id, "settle": settle})
            await connection.execute(_FORGOTTEN)
        named = await named_keys(self._database)
        return named is None or named.previous is None

    async def _pass(self, progress: Callable[[int], None], *, before: int, unreadable: set[UUID]) -> int:
        """Make one pass over the vault, and return the number of encrypted secrets. `unreadable` collects those that cannot be
        decrypted."""
        last, count = _NOTHING, 0
        while rows := await self._database.rows(_DUE, (self._old_id, last, self._batch)):
            due = [EncryptedSecret(*row) for row in rows]
            last = due[-1].reference
            count += await self._encrypt(due, unreadable)
            progress(before + count)
        return count

    async def _encrypt(self, due: Sequence[EncryptedSecret], unreadable: set[UUID]) -> int:
        cipher = self._ring.cipher
        pairs: list[tuple[EncryptedSecret, EncryptedSecret]] = []
        for old in due:
            try:
                secret = cipher.decrypt(old)
            except DecryptionFailed:
                unreadable.add(old.reference)
                continue
            nonce = os.urandom(NONCE_BYTES)
            pairs.append((old, cipher.encrypt(secret, owner=old.owner, reference=old.reference, nonce=nonce)))
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

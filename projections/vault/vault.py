"""The vault: encrypted secrets in a table next to the log."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from domain.kernel.encryption import NONCE_BYTES, EncryptedSecret, SecretCipher
from domain.kernel.errors import DecryptionFailed
from domain.kernel.ids import new_id
from domain.webhook import endpoint as signing
from projections.kernel.data_loader import DataLoader
from projections.kernel.database.arrays import uuids
from projections.kernel.database.database import Database


def new_signing_secret() -> str:
    """Return a secret from the operating system's random generator, in the form of the Standard Webhooks specification."""
    return signing.encode_secret(os.urandom(signing.BYTES))


_STORED: Final = "SELECT reference, owner, key_id, fingerprint, nonce, ciphertext FROM vault WHERE reference = ANY(%s)"


class Vault:
    """Encrypts the secrets of commands, which the append writes, and decrypts stored ones."""

    def __init__(self, database: Database, cipher: SecretCipher) -> None:
        self._database = database
        self._cipher = cipher
        self._stored = DataLoader(self._read)

    def encrypt(self, secret: str, *, owner: str) -> EncryptedSecret:
        """Encrypt a secret. `owner` is the stream of the aggregate that the secret belongs to."""
        return self._cipher.encrypt(secret, owner=owner, reference=new_id(), nonce=os.urandom(NONCE_BYTES))

    async def read(self, reference: UUID, *, owner: str) -> str | None:
        """Return a stored secret in plain text; None if it was erased. `owner` is the stream that holds the reference.

        Raise `DecryptionFailed`, also if the secret belongs to another stream.
        """
        secret = await self._stored(reference)
        if secret is None:
            return None
        if secret.owner != owner:
            raise DecryptionFailed(f"the secret {reference}")
        return self.decrypt(secret)

    async def _read(self, references: Sequence[UUID]) -> Mapping[UUID, EncryptedSecret]:
        rows = await self._database.rows(_STORED, (uuids(references),))
        return {row[0]: EncryptedSecret(*row) for row in rows}

    def decrypt(self, secret: EncryptedSecret) -> str:
        """Decrypt a secret that the caller has read. Raise `DecryptionFailed`."""
        return self._cipher.decrypt(secret)

"""The vault: encrypted secrets in a table beside the log."""

from __future__ import annotations

import os
from uuid import UUID

from domain.kernel.encryption import NONCE_BYTES, DecryptionFailed, EncryptedSecret, SecretCipher
from domain.kernel.ids import new_id
from projections.kernel.database import Database


class Vault:
    """Encrypts the secrets of commands, which the append writes, and decrypts stored ones."""

    def __init__(self, database: Database, cipher: SecretCipher) -> None:
        self._database = database
        self._cipher = cipher

    def encrypt(self, secret: str, *, owner: str) -> EncryptedSecret:
        """`owner` is the stream of the aggregate that the secret belongs to."""
        return self._cipher.encrypt(secret, owner=owner, reference=new_id(), nonce=os.urandom(NONCE_BYTES))

    async def read(self, reference: UUID, *, owner: str) -> str | None:
        """A stored secret in plain text; None when it was erased. `owner` is the stream that holds the reference. Raises
        `DecryptionFailed`, also for the secret of another."""
        row = await self._database.row(
            "SELECT reference, owner, key_id, fingerprint, nonce, ciphertext FROM vault WHERE reference = %s", (reference,)
        )
        if row is None:
            return None
        secret = EncryptedSecret(*row)
        if secret.owner != owner:
            raise DecryptionFailed(str(reference))
        return self.decrypt(secret)

    def decrypt(self, secret: EncryptedSecret) -> str:
        """A secret that the caller has read itself. Raises `DecryptionFailed`."""
        return self._cipher.decrypt(secret)

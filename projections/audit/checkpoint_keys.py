"""The keys that sign checkpoints. The private keys are in the vault, under the master key."""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from typing import Final

from domain.kernel.encryption import EncryptedSecret
from domain.kernel.errors import DecryptionFailed, Unavailable
from projections.audit.signed_note import PublicKey, SigningKey
from projections.audit.stored_log import StoredLog
from projections.vault.vault import Vault

PUBLIC_KEYS: Final = "SELECT public_key FROM checkpoint_keys ORDER BY number"
_LAST: Final = """
SELECT k.number, k.public_key, v.reference, v.owner, v.key_id, v.fingerprint, v.nonce, v.ciphertext
FROM checkpoint_keys k LEFT JOIN vault v USING (reference) ORDER BY k.number DESC LIMIT 1
"""
_STORE: Final = """
WITH encrypted AS (
    INSERT INTO vault (reference, owner, key_id, fingerprint, nonce, ciphertext) VALUES (%s, %s, %s, %s, %s, %s) RETURNING reference
)
INSERT INTO checkpoint_keys (number, public_key, reference)
SELECT (SELECT coalesce(max(number), 0) + 1 FROM checkpoint_keys), %s, reference FROM encrypted
"""


class CheckpointKeys:
    """Reads and creates keys in the transaction of a checkpoint. `name` is the name of the log."""

    def __init__(self, stored: StoredLog, vault: Vault, *, name: str) -> None:
        self._stored = stored
        self._vault = vault
        self._name = name
        self._current: SigningKey | None = None

    def current(self) -> SigningKey:
        """Return the key in use; the first checkpoint creates it. Raise `Unavailable` if the master key does not decrypt it."""
        if self._current is None:
            row = self._stored.row(_LAST)
            self._current = self.new() if row is None else self._read(*row)
        return self._current

    def _read(self, number: int, public: str, *secret: object) -> SigningKey:
        try:
            seed = self._vault.decrypt(EncryptedSecret(*secret)) if secret[0] is not None else None  # type: ignore[arg-type]
        except DecryptionFailed:
            seed = None
        if seed is None:
            raise Unavailable(f"the key {number} of checkpoints cannot be decrypted")
        key = SigningKey(self._name, b64decode(seed))
        if str(key.public) != public:
            raise Unavailable(f"the public key {number} of checkpoints was changed")
        return key

    def new(self) -> SigningKey:
        """Create a key and store it with the transaction."""
        key = SigningKey(self._name, os.urandom(32))
        secret = self._vault.encrypt(b64encode(key.seed).decode(), owner=f"checkpoint_key:{self._name}")
        values = (secret.reference, secret.owner, secret.key_id, secret.fingerprint, secret.nonce, secret.ciphertext)
        self._stored.write(_STORE, *values, str(key.public))
        return key

    def checked(self, note: str) -> str:
        """Return the text of a checkpoint that the key in use has signed. Raise `NoteInvalid` if it has not."""
        key: PublicKey = self.current().public
        return key.check(note)

"""Encryption of secrets: AES-256-GCM with a key derived from the master key, bound to the owner.

An event holds a reference to an encrypted secret and a fingerprint of it, never the secret, not even encrypted. So a secret can be
erased, or encrypted under another key, while the log stays the same: docs/adr/0015-secrets-in-a-vault.md.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from hashlib import sha256
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import BaseModel, ConfigDict

NONCE_BYTES = 12


class SecretRef(BaseModel):
    """A reference to a secret in the vault, for events. Equal secrets of one owner have equal fingerprints."""

    model_config = ConfigDict(frozen=True)

    reference: UUID
    fingerprint: str


def kept_or_new(stored: SecretRef | None, sent: SecretRef | None) -> SecretRef | None:
    """The reference to keep after a write: the stored one when the same secret was sent again."""
    return stored if stored is not None and sent is not None and stored.fingerprint == sent.fingerprint else sent


@dataclass(frozen=True, slots=True)
class EncryptedSecret:
    """A secret as the vault stores it. `owner` is a stream; `key_id` names the key that it is encrypted with."""

    reference: UUID
    owner: str
    key_id: str
    fingerprint: str
    nonce: bytes = field(repr=False)
    ciphertext: bytes = field(repr=False)

    @property
    def ref(self) -> SecretRef:
        return SecretRef(reference=self.reference, fingerprint=self.fingerprint)


class DecryptionFailed(Exception):
    """The secret was encrypted with another key or for another owner, or was changed."""


class SecretCipher:
    """Encrypts and decrypts with keys derived from the master key. Pure: the caller chooses references and nonces.

    `previous` is the master key before this one. While a master key is replaced, secrets under it can still be decrypted; nothing
    is encrypted with it."""

    def __init__(self, master_key: bytes, *, previous: bytes | None = None) -> None:
        self.key_id = _key_id(master_key)
        self._aead = _aead(master_key)
        self._aeads = {self.key_id: self._aead}
        if previous is not None:
            self._aeads[_key_id(previous)] = _aead(previous)
        self._fingerprint_key = _derived(master_key, b"medialedger vault fingerprint 1")

    def encrypt(self, secret: str, *, owner: str, reference: UUID, nonce: bytes) -> EncryptedSecret:
        ciphertext = self._aead.encrypt(nonce, secret.encode(), _bound(owner, reference))
        return EncryptedSecret(reference, owner, self.key_id, self.fingerprint(secret, owner=owner), nonce, ciphertext)

    def decrypt(self, secret: EncryptedSecret) -> str:
        try:
            aead = self._aeads[secret.key_id]
            return aead.decrypt(secret.nonce, secret.ciphertext, _bound(secret.owner, secret.reference)).decode()
        except (KeyError, InvalidTag):
            raise DecryptionFailed(str(secret.reference)) from None

    def fingerprint(self, secret: str, *, owner: str) -> str:
        """Without the key it reveals nothing of the secret, and not that two owners have the same one."""
        return hmac.new(self._fingerprint_key, f"{owner}\0{secret}".encode(), sha256).hexdigest()[:32]


class KeyedHash:
    """A keyed hash. Equal bytes can be recognized by a process with the master key, and by no other.

    `previous` is the master key before this one: hashes that were made with it are still recognized."""

    def __init__(self, master_key: bytes, *, previous: bytes | None = None) -> None:
        keys = (master_key,) if previous is None else (master_key, previous)
        self._keys = [_derived(key, b"medialedger request mark 1") for key in keys]

    def __call__(self, data: bytes) -> bytes:
        return hmac.digest(self._keys[0], data, "sha256")

    def matches(self, mark: bytes, data: bytes) -> bool:
        """Whether the mark is a hash of these bytes, under the master key or the previous one."""
        return any(hmac.compare_digest(hmac.digest(key, data, "sha256"), mark) for key in self._keys)


def ingest_key(master_key: bytes) -> bytes:
    """The key of `domain.configuration.ingest_token`."""
    return _derived(master_key, b"medialedger origin ingest 1")


def _aead(master_key: bytes) -> AESGCM:
    return AESGCM(_derived(master_key, b"medialedger vault box 1"))


def _key_id(master_key: bytes) -> str:
    return _derived(master_key, b"medialedger vault key id 1")[:8].hex()


def _derived(master_key: bytes, purpose: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt=None, info=purpose).derive(master_key)


def _bound(owner: str, reference: UUID) -> bytes:
    return f"{owner}\0{reference}".encode()

"""Secrets, sealed: AES-256-GCM under a key of the master key, bound to their owner.

An event holds a reference to a sealed secret and a fingerprint of it, never the secret, not even sealed: so it can be erased, and
sealed again under another key, while the log stays as it is. architecture.md, §2, "Secrets".
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
    """What an event says of a secret: where it lies, and a mark by which the same secret is known again."""

    model_config = ConfigDict(frozen=True)

    reference: UUID
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Sealed:
    """A secret as the vault keeps it. `owner` is a stream; `key_id` names the key that it is sealed with."""

    reference: UUID
    owner: str
    key_id: str
    fingerprint: str
    nonce: bytes = field(repr=False)
    box: bytes = field(repr=False)

    @property
    def ref(self) -> SecretRef:
        return SecretRef(reference=self.reference, fingerprint=self.fingerprint)


class Unsealable(Exception):
    """A box that this key does not open, or that belongs to another owner or was changed."""


class Sealer:
    """Seals and opens with keys derived from the master key. Pure: references and nonces are its caller's to draw.

    `previous` is the master key before this one, while boxes may still be sealed with it: those open too, and nothing new is sealed
    with it."""

    def __init__(self, master_key: bytes, *, previous: bytes | None = None) -> None:
        self.key_id = _key_id(master_key)
        self._box = _box(master_key)
        self._boxes = {self.key_id: self._box}
        if previous is not None:
            self._boxes[_key_id(previous)] = _box(previous)
        self._marks = _derived(master_key, b"medialedger vault fingerprint 1")

    def seal(self, secret: str, *, owner: str, reference: UUID, nonce: bytes) -> Sealed:
        box = self._box.encrypt(nonce, secret.encode(), _bound(owner, reference))
        return Sealed(reference, owner, self.key_id, self.fingerprint(secret, owner=owner), nonce, box)

    def opened(self, sealed: Sealed) -> str:
        try:
            return self._boxes[sealed.key_id].decrypt(sealed.nonce, sealed.box, _bound(sealed.owner, sealed.reference)).decode()
        except (KeyError, InvalidTag):
            raise Unsealable(str(sealed.reference)) from None

    def fingerprint(self, secret: str, *, owner: str) -> str:
        """Says nothing of the secret to whoever lacks the key, nor that two owners have the same one."""
        return hmac.new(self._marks, f"{owner}\0{secret}".encode(), sha256).hexdigest()[:32]


class Marker:
    """Marks bytes so that the same are known again, by whoever has the master key and nobody else."""

    def __init__(self, master_key: bytes) -> None:
        self._key = _derived(master_key, b"medialedger request mark 1")

    def __call__(self, data: bytes) -> bytes:
        return hmac.digest(self._key, data, "sha256")


def _box(master_key: bytes) -> AESGCM:
    return AESGCM(_derived(master_key, b"medialedger vault box 1"))


def _key_id(master_key: bytes) -> str:
    return _derived(master_key, b"medialedger vault key id 1")[:8].hex()


def _derived(master_key: bytes, purpose: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt=None, info=purpose).derive(master_key)


def _bound(owner: str, reference: UUID) -> bytes:
    return f"{owner}\0{reference}".encode()

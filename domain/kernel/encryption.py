"""Encryption of secrets: AES-256-GCM with a key derived from the master key, bound to the owner.

An event holds a reference to an encrypted secret and a fingerprint of it, never the secret itself, not even encrypted. A secret can
therefore be erased, or encrypted under another key, while the log stays the same: docs/adr/0015-secrets-in-a-vault.md.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import BaseModel, ConfigDict

from domain.kernel.errors import DecryptionFailed, KeyMissing

NONCE_BYTES = 12


class SecretRef(BaseModel):
    """A reference to a secret in the vault, for events. Equal secrets of one owner have equal fingerprints."""

    model_config = ConfigDict(frozen=True)

    reference: UUID
    fingerprint: str


def stored_or_new(stored: SecretRef | None, sent: SecretRef | None) -> SecretRef | None:
    """Return the reference to store after a write: the stored one if the same secret was sent again, else the new one."""
    return stored if stored is not None and sent is not None and stored.fingerprint == sent.fingerprint else sent


@dataclass(frozen=True, slots=True)
class EncryptedSecret:
    """A secret as the vault stores it. `owner` is a stream; `key_id` names the key that encrypts the secret."""

    reference: UUID
    owner: str
    key_id: str
    fingerprint: str
    nonce: bytes = field(repr=False)
    ciphertext: bytes = field(repr=False)

    @property
    def ref(self) -> SecretRef:
        return SecretRef(reference=self.reference, fingerprint=self.fingerprint)


class _Sealing(NamedTuple):
    """The key that encrypts new secrets. It is replaced as a whole, because other threads encrypt at the same time."""

    key_id: str
    aead: AESGCM
    fingerprint_key: bytes


class SecretCipher:
    """Encrypts and decrypts with keys derived from the master key. The caller chooses references and nonces.

    `previous` is the master key before this one. While a master key is being replaced, secrets under the previous key can still be
    decrypted, but nothing is encrypted with it. `look` is called for a secret whose key is missing, and may load the key
    (`KeyRing`).
    """

    def __init__(self, master_key: bytes, *, previous: bytes | None = None, look: Callable[[], object] = bool) -> None:
        self._look = look
        self._aeads: dict[str, AESGCM] = {}
        self.use(*_present(master_key, previous))

    def use(self, master_key: bytes, *others: bytes) -> None:
        """Encrypt with the first key, and decrypt with all of them, from this call on."""
        self._aeads = {_key_id(key): _aead(key) for key in (master_key, *others)}
        key_id = _key_id(master_key)
        self._sealing = _Sealing(key_id, self._aeads[key_id], _derived(master_key, b"medialedger vault fingerprint 1"))

    @property
    def key_id(self) -> str:
        """The id of the key that encrypts new secrets."""
        return self._sealing.key_id

    @property
    def key_ids(self) -> Sequence[str]:
        """The ids of the keys that can decrypt secrets."""
        return tuple(self._aeads)

    def encrypt(self, secret: str, *, owner: str, reference: UUID, nonce: bytes) -> EncryptedSecret:
        sealing = self._sealing
        ciphertext = sealing.aead.encrypt(nonce, secret.encode(), _bound(owner, reference))
        mark = _fingerprint(sealing.fingerprint_key, secret, owner=owner)
        return EncryptedSecret(reference, owner, sealing.key_id, mark, nonce, ciphertext)

    def decrypt(self, secret: EncryptedSecret) -> str:
        if secret.key_id not in self._aeads:
            self._look()
        try:
            aead = self._aeads[secret.key_id]
            return aead.decrypt(secret.nonce, secret.ciphertext, _bound(secret.owner, secret.reference)).decode()
        except KeyError:
            raise KeyMissing(f"the secret {secret.reference}") from None
        except InvalidTag:
            raise DecryptionFailed(f"the secret {secret.reference}") from None

    def fingerprint(self, secret: str, *, owner: str) -> str:
        """Return a keyed fingerprint of the secret. Without the key it reveals nothing about the secret, not even that two owners
        have the same one."""
        return _fingerprint(self._sealing.fingerprint_key, secret, owner=owner)


class KeyedHash:
    """A keyed hash. Only a process with the master key can recognise equal bytes.

    `previous` is the master key before this one; hashes that were made with it are still recognised.
    """

    def __init__(self, master_key: bytes, *, previous: bytes | None = None) -> None:
        self.use(*_present(master_key, previous))

    def use(self, master_key: bytes, *others: bytes) -> None:
        """Hash with the first key, and recognise hashes of all keys, from this call on."""
        self._keys = tuple(_derived(key, b"medialedger request mark 1") for key in (master_key, *others))

    def __call__(self, data: bytes) -> bytes:
        return hmac.digest(self._keys[0], data, "sha256")

    def matches(self, mark: bytes, data: bytes) -> bool:
        """Return True if the mark is a hash of these bytes under any of the keys."""
        return any(hmac.compare_digest(hmac.digest(key, data, "sha256"), mark) for key in self._keys)


class IngestKeys:
    """The keys of tokens of publishing points (`domain.channel.point_token`), derived from the master keys."""

    def __init__(self, master_key: bytes, *, previous: bytes | None = None) -> None:
        self.use(*_present(master_key, previous))

    def use(self, master_key: bytes, *others: bytes) -> None:
        """Make tokens with the first key, and accept tokens of all keys, from this call on."""
        self.all: Sequence[bytes] = tuple(ingest_key(key) for key in (master_key, *others))

    @property
    def present(self) -> bytes:
        """The key that new tokens are made with."""
        return self.all[0]


class KeyRing:
    """The master keys of a process, and everything that is derived from them. It encrypts with one key and decrypts with all.

    A key stays until the process ends, because a request from before a rotation may be repeated, and an encoder may continue to use
    its token. `read` returns the keys in the files of this machine. It is called when a key is missing, because an operator may
    have added one since the start.
    """

    def __init__(self, master_key: bytes, *, previous: bytes | None = None, read: Callable[[], Iterable[bytes]] = tuple) -> None:
        self._read = read
        self._keys = {fingerprint(key): key for key in _present(master_key, previous)}
        self._first = fingerprint(master_key)
        self.cipher = SecretCipher(master_key, previous=previous, look=self.look)
        self.marks = KeyedHash(master_key, previous=previous)
        self.ingest = IngestKeys(master_key, previous=previous)

    @property
    def fingerprints(self) -> Sequence[str]:
        """The fingerprints of the keys. The first key encrypts."""
        return (self._first, *(name for name in self._keys if name != self._first))

    @property
    def key_ids(self) -> Mapping[str, str]:
        """The key ids that secrets store, by the fingerprints of the master keys."""
        return {name: _key_id(key) for name, key in self._keys.items()}

    def look(self) -> bool:
        """Load the keys that are now in the files. Return True if one of them is new."""
        new = {name: key for key in self._read() if (name := fingerprint(key)) not in self._keys}
        if new:
            self._keys = {**self._keys, **new}
            self.encrypt_with(self._first)
        return bool(new)

    def encrypt_with(self, name: str) -> None:
        """Encrypt with the key that has this fingerprint, from this call on. The key must be loaded."""
        self._first = name
        keys = [self._keys[fingerprint] for fingerprint in self.fingerprints]
        for each in (self.cipher, self.marks, self.ingest):
            each.use(*keys)


def fingerprint(master_key: bytes) -> str:
    """Return a text that distinguishes master keys without revealing them. It is stored with the data that the key encrypts."""
    return hmac.new(master_key, b"medialedger master key", sha256).hexdigest()[:16]


def ingest_key(master_key: bytes) -> bytes:
    """Return the key that signs the tokens of `domain.channel.point_token`."""
    return _derived(master_key, b"medialedger origin ingest 1")


def _present(master_key: bytes, previous: bytes | None) -> Sequence[bytes]:
    return (master_key,) if previous in (None, master_key) else (master_key, previous)


def _fingerprint(key: bytes, secret: str, *, owner: str) -> str:
    return hmac.new(key, f"{owner}\0{secret}".encode(), sha256).hexdigest()[:32]


def _aead(master_key: bytes) -> AESGCM:
    return AESGCM(_derived(master_key, b"medialedger vault box 1"))


def _key_id(master_key: bytes) -> str:
    return _derived(master_key, b"medialedger vault key id 1")[:8].hex()


def _derived(master_key: bytes, purpose: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt=None, info=purpose).derive(master_key)


def _bound(owner: str, reference: UUID) -> bytes:
    return f"{owner}\0{reference}".encode()

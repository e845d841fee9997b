"""Signed notes as defined by C2SP: a text, an empty line, and a line for each signature, here with Ed25519."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ED25519: Final = b"\x01"
_SEED: Final = 32
_ID: Final = 4


class NoteInvalid(Exception):
    """Raised when a text is not a signed note, or a signature was not made by the key."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The key with which others verify the signatures of `name`."""

    name: str
    public: bytes

    @classmethod
    def read(cls, text: str) -> PublicKey:
        """Return the key of a text `name+id+key`. Raise `NoteInvalid`."""
        name, _, encoded = text.split("+", 2) if text.count("+") >= 2 else ("", "", "")
        try:
            content = b64decode(encoded, validate=True)
        except ValueError:
            content = b""
        if len(content) != len(ED25519) + _SEED or not content.startswith(ED25519):
            raise NoteInvalid("it is not the public key of a signer")
        return cls(name, content.removeprefix(ED25519))

    @property
    def id(self) -> bytes:
        """The first four bytes of SHA-256(name | 0x0A | 0x01 | public key)."""
        return sha256(self.name.encode() + b"\n" + ED25519 + self.public).digest()[:_ID]

    def __str__(self) -> str:
        """Return `name+id+key`, the form that other programs read."""
        return f"{self.name}+{self.id.hex()}+{b64encode(ED25519 + self.public).decode()}"

    def check(self, note: str) -> str:
        """Return the text of the note. Raise `NoteInvalid` unless this key has signed it."""
        text, separator, signatures = note.rpartition("\n\n")
        for line in signatures.splitlines() if separator else ():
            mark, name, encoded = [*line.split(" "), "", ""][:3]
            try:
                signed = b64decode(encoded, validate=True)
            except ValueError:
                raise NoteInvalid("a signature is not Base64") from None
            if (mark, name, signed[:_ID]) == ("—", self.name, self.id):
                return self._verify(f"{text}\n", signed[_ID:])
        raise NoteInvalid(f"{self.name} has not signed the note with the key {self.id.hex()}")

    def _verify(self, text: str, signature: bytes) -> str:
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, text.encode())
        except InvalidSignature:
            raise NoteInvalid(f"the signature of the key {self.id.hex()} is wrong") from None
        return text


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key that signs notes. `seed` is the private key."""

    name: str
    seed: bytes = field(repr=False)

    @property
    def public(self) -> PublicKey:
        return PublicKey(self.name, Ed25519PrivateKey.from_private_bytes(self.seed).public_key().public_bytes_raw())

    def signature(self, text: str) -> str:
        """Return the signature line."""
        signed = Ed25519PrivateKey.from_private_bytes(self.seed).sign(text.encode())
        return f"— {self.name} {b64encode(self.public.id + signed).decode()}\n"


def sign(text: str, keys: Sequence[SigningKey]) -> str:
    """Return the signed note of a text, which must end with a newline."""
    return f"{text}\n{''.join(key.signature(text) for key in keys)}"


def signers(note: str) -> list[str]:
    """Return the ids of the keys that claim to have signed the note, in hexadecimal digits. The signatures are not verified."""
    lines = note.rpartition("\n\n")[2].splitlines()
    return [b64decode(line.rpartition(" ")[2])[:_ID].hex() for line in lines]

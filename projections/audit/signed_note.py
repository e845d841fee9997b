"""Signed notes as C2SP has them: a text, an empty line, and a line for each signature, here by Ed25519."""

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
    """It is not a signed note, or a signature is not that of the key."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """What others check the signatures of `name` with."""

    name: str
    public: bytes

    @classmethod
    def read(cls, text: str) -> PublicKey:
        """Of `name+id+key`. Raises `NoteInvalid`."""
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
        """`name+id+key`, as other programs read it."""
        return f"{self.name}+{self.id.hex()}+{b64encode(ED25519 + self.public).decode()}"

    def check(self, note: str) -> str:
        """The text of the note. Raises `NoteInvalid` unless this key has signed it."""
        text, found, signatures = note.rpartition("\n\n")
        for line in signatures.splitlines() if found else ():
            mark, name, encoded = [*line.split(" "), "", ""][:3]
            try:
                signed = b64decode(encoded, validate=True)
            except ValueError:
                raise NoteInvalid("a signature is not Base64") from None
            if (mark, name, signed[:_ID]) == ("—", self.name, self.id):
                return self._checked(f"{text}\n", signed[_ID:])
        raise NoteInvalid(f"{self.name} has not signed it with the key {self.id.hex()}")

    def _checked(self, text: str, signature: bytes) -> str:
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, text.encode())
        except InvalidSignature:
            raise NoteInvalid(f"the signature of the key {self.id.hex()} is wrong") from None
        return text


@dataclass(frozen=True, slots=True)
class SigningKey:
    """`seed` is the private key."""

    name: str
    seed: bytes = field(repr=False)

    @property
    def public(self) -> PublicKey:
        return PublicKey(self.name, Ed25519PrivateKey.from_private_bytes(self.seed).public_key().public_bytes_raw())

    def signature(self, text: str) -> str:
        """The line."""
        signed = Ed25519PrivateKey.from_private_bytes(self.seed).sign(text.encode())
        return f"— {self.name} {b64encode(self.public.id + signed).decode()}\n"


def sign(text: str, keys: Sequence[SigningKey]) -> str:
    """`text` ends with a line end."""
    return f"{text}\n{''.join(key.signature(text) for key in keys)}"


def signers(note: str) -> list[str]:
    """The ids of the keys that say they signed the note, in hexadecimal digits. No signature is checked."""
    lines = note.rpartition("\n\n")[2].splitlines()
    return [b64decode(line.rpartition(" ")[2])[:_ID].hex() for line in lines]

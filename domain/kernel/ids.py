"""New ids: random version-4 UUIDs. They are not secrets; keys are made with the module `secrets`."""

from __future__ import annotations

import os
from hashlib import sha256
from uuid import UUID

_BLOCK = 4096
_VERSION_8 = 0x8000 << 64 | 0x8000 << 48
_RANDOM = ~(0xF000 << 64 | 0xC000 << 48)


class RandomSource:
    """A source of 16 random bytes per call. It reads enough bytes for 256 calls from the system at once: a request needs several
    ids, and each system call costs as much as parsing its body. A forked child starts over, so it never repeats its parent's bytes.
    """

    def __init__(self) -> None:
        self._block = b""
        self._at = 0
        os.register_at_fork(after_in_child=self._forget)

    def __call__(self) -> bytes:
        at = self._at
        if at >= len(self._block):
            self._block, at = os.urandom(_BLOCK), 0
        self._at = at + 16
        return self._block[at : at + 16]

    def _forget(self) -> None:
        self._block, self._at = b"", 0


random_16 = RandomSource()


def new_id() -> UUID:
    return UUID(bytes=random_16(), version=4)


def canonical(key: str) -> str:
    """Return a GUID in the product's spelling, lower case with hyphens, so that any spelling finds it. Return any other text
    unchanged."""
    try:
        return str(UUID(key))
    except ValueError:
        return key


def hashed(*parts: str) -> UUID:
    """Return a GUID of version 8 (RFC 9562) that is derived from texts by 122 bits of SHA-256. Parts are hashed with their lengths,
    so different lists of parts give different ids."""
    hashed = b"".join(len(part).to_bytes(4) + part for part in (part.encode() for part in parts))
    return UUID(int=int.from_bytes(sha256(hashed).digest()[:16]) & _RANDOM | _VERSION_8)

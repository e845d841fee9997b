"""Which key a question means. reference/drm.md, c.5: same question, same key; one kid never has two keys; clients share none.

A key goes by its client and its kid, and that is the name of its stream: so the log itself keeps a second key from a kid. Where
the caller leaves the kid to us it is made of what was asked, so that the same question finds the same key with nothing looked up,
and finds it as well when the caller sends our kid back. Parts are hashed with their lengths, so that no two lists are one.
"""

from __future__ import annotations

from hashlib import sha256
from uuid import UUID

_VERSION_8 = 0x8000 << 64 | 0x8000 << 48
_RANDOM = ~(0xF000 << 64 | 0xC000 << 48)


def kid_of(*, client: str, content_id: str, period: str, slot: str) -> UUID:
    """The kid of a key that was asked for without one. It says nothing of the key, which is random."""
    return _hashed("kid", client, content_id, period, slot)


def key_of(*, client: str, kid: UUID) -> UUID:
    """The key of the aggregate, in its stream's name."""
    return _hashed("content key", client, kid.hex)


def _hashed(*parts: str) -> UUID:
    """A GUID of version 8 (RFC 9562): 122 bits of SHA-256."""
    told = b"".join(len(part).to_bytes(4) + part for part in (part.encode() for part in parts))
    return UUID(int=int.from_bytes(sha256(told).digest()[:16]) & _RANDOM | _VERSION_8)

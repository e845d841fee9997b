"""Which key a question means. reference/drm.md, c.5: same question, same key; one kid never has two keys; clients share none.

A key goes by its client and its kid, and that is the name of its stream: so the log itself keeps a second key from a kid. Where
the caller leaves the kid to us it is made of what was asked, so that the same question finds the same key with nothing looked up,
and finds it as well when the caller sends our kid back. Parts are hashed with their lengths, so that no two lists are one.
"""

from __future__ import annotations

from uuid import UUID

from domain.kernel.ids import hashed


def kid_of(*, client: str, content_id: str, period: str, slot: str) -> UUID:
    """The kid of a key that was asked for without one. It says nothing of the key, which is random."""
    return hashed("kid", client, content_id, period, slot)


def key_of(*, client: str, kid: UUID) -> UUID:
    """The key of the aggregate, in its stream's name."""
    return hashed("content key", client, kid.hex)

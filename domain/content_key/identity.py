"""Ids of content keys, computed from the request: docs/reference/api/key-provider.md#keys.

The stream of a key is named by its client and kid, so the log accepts only one key for a kid. A kid that the packager leaves to the
product is computed from the request: the same request finds the same key without a look-up, and so does a request that sends this
kid. The parts are hashed with their lengths, so different lists of parts never give the same text.
"""

from __future__ import annotations

from uuid import UUID

from domain.kernel.ids import hashed


def kid_of(*, client: str, content_id: str, period: str, slot: str) -> UUID:
    """Return the kid of a key that was requested without one. It reveals nothing about the key, which is random."""
    return hashed("kid", client, content_id, period, slot)


def key_of(*, client: str, kid: UUID) -> UUID:
    """Return the key of the aggregate."""
    return hashed("content key", client, kid.hex)

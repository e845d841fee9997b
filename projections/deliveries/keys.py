"""What names a delivery and places it: its id, which never changes, its shard, and the channel on which senders hear of it.
contract.md, "Webhook delivery".

The id is a UUID of version 8 (RFC 9562, section 5.8): 60 bits of log position, then a 62-bit hash of webhook and lane. So it needs
no column, sorts as the log does, and a row is found by it through the position.
"""

from __future__ import annotations

import zlib
from hashlib import blake2b
from typing import Final
from uuid import UUID

SHARDS: Final = 16
CHANNEL: Final = "medialedger_deliveries"
"""Of NOTIFY: there is something to send. The payload is the webhook whose deliveries are to be looked through again, or empty when
all that is new lies behind what was there."""

_VERSION = 8 << 76
_VARIANT = 2 << 62
_LOW_POSITION = 0xFFF
_HASH = (1 << 62) - 1


def delivery_id(webhook: UUID, position: int, *, lane: str) -> UUID:
    digest = blake2b(webhook.bytes + lane.encode(), digest_size=8).digest()
    high, low = position >> 12, position & _LOW_POSITION
    return UUID(int=high << 80 | _VERSION | low << 64 | _VARIANT | int.from_bytes(digest) & _HASH)


def position_of(delivery: UUID) -> int:
    """The position that is in a delivery's id. Of any other UUID it gives a number that means nothing."""
    return delivery.int >> 80 << 12 | delivery.int >> 64 & _LOW_POSITION


def shard_of(webhook: UUID) -> int:
    return zlib.crc32(webhook.bytes) % SHARDS

"""The id of a delivery, its shard, and the channel that notifies senders.

The id is the `webhook-id` of docs/reference/api/webhooks.md#request-headers, a UUID of version 8 (RFC 9562, section 5.8): 60 bits
of log position, then a 62-bit hash of webhook, ordering key and epoch. It needs no column, sorts in log order, and yields the
position of its row. The epoch is that of the position: after commits were lost, a position is given to another write, and a
receiver that has seen the former id would skip the new notification.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from hashlib import blake2b
from typing import Final
from uuid import UUID

from domain.webhook.aggregate import Webhook
from domain.webhook.callback import Callback
from projections.log.reader import FIRST_EPOCH

SHARDS: Final = 16
ENDPOINTS: Final = f"('{Webhook.KIND}', '{Callback.KIND}')"
"""The kinds of records that are called, as SQL. No webhook has the id of a callback."""
CHANNEL: Final = "medialedger_deliveries"
"""The NOTIFY channel for new pending deliveries. The payload is a webhook whose deliveries are to be read again from the beginning,
or empty if the new ones come after all present ones of their source."""


LOG_SEALED: Final = "log.sealed"
"""The ordering key of the notifications of checkpoints."""


FAN_OUT: Final = "webhooks"
"""The consumer that inserts the notifications of webhooks."""


class DeliverySource(IntEnum):
    """A fan-out that inserts deliveries, in log order. All deliveries of one webhook come from one source."""

    NOTIFICATIONS = 0
    CALLBACKS = 1


_VERSION = 8 << 76
_VARIANT = 2 << 62
_LOW_POSITION = 0xFFF
_HASH = (1 << 62) - 1


def delivery_id(webhook: UUID, position: int, *, ordering_key: str, epoch: int = FIRST_EPOCH) -> UUID:
    later = (epoch - FIRST_EPOCH).to_bytes(8)
    digest = blake2b(webhook.bytes + ordering_key.encode(), digest_size=8, salt=later).digest()
    high, low = position >> 12, position & _LOW_POSITION
    return UUID(int=high << 80 | _VERSION | low << 64 | _VARIANT | int.from_bytes(digest) & _HASH)


def position_of(delivery: UUID) -> int:
    """Return the position in the id of a delivery. For any other UUID the result is a number without meaning."""
    return delivery.int >> 80 << 12 | delivery.int >> 64 & _LOW_POSITION


def shard_of(webhook: UUID) -> int:
    return zlib.crc32(webhook.bytes) % SHARDS

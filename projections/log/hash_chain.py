"""What the hash chain covers, byte for byte.

leaf = SHA-256 over the event's own content, each variable part preceded by its length, so that no two contents share bytes:
    int4 length, originator id (UTF-8) | int8 version | int4 length, topic | 16 bytes event id | int4 length, metadata | state
chain hash = SHA-256(previous chain hash | leaf | int8 position | int8 recorded-at in microseconds since 1970); the first previous
one is 32 zero bytes. All integers big-endian. `log_append()` in schema.sql makes chain hashes; `verify` and any auditor can make
them again.
"""

from __future__ import annotations

import struct
from hashlib import sha256
from uuid import UUID

FIRST_CHAIN_HASH = bytes(32)

_INT = struct.Struct(">i")
_VERSION = struct.Struct(">q")
_PLACE = struct.Struct(">qq")


def leaf(*, stream: str, version: int, topic: str, event_id: UUID, metadata: bytes, state: bytes) -> bytes:
    name, kind, size = stream.encode(), topic.encode(), _INT.pack
    return sha256(
        b"".join(
            (
                size(len(name)),
                name,
                _VERSION.pack(version),
                size(len(kind)),
                kind,
                event_id.bytes,
                size(len(metadata)),
                metadata,
                state,
            )
        )
    ).digest()


def chain_hash(previous: bytes, *, leaf: bytes, position: int, recorded_micros: int) -> bytes:
    return sha256(previous + leaf + _PLACE.pack(position, recorded_micros)).digest()


# The same content, put together by PostgreSQL from the stored columns, for reading the log in bulk.
CONTENT_SQL = """
    int4send(octet_length(originator_id)) || convert_to(originator_id, 'UTF8') || int8send(originator_version)
    || int4send(octet_length(topic)) || convert_to(topic, 'UTF8') || uuid_send(event_id)
    || int4send(octet_length(metadata::text)) || convert_to(metadata::text, 'UTF8') || state
"""

"""An event in the binary form of the composite type `appended_event`, one element of the array that `log_append()` takes.

A command makes the records of its events once, before it waits; a batch only joins them. The form is that of PostgreSQL's
record_recv: the number of columns, then the type, length and value of each.
"""

from __future__ import annotations

import struct
from typing import Final
from uuid import UUID

ELEMENT: Final = "SELECT 'appended_event'::regtype::oid::bigint"
"""A query for the number (OID) of the type, which differs between databases."""

_BIGINT, _BYTEA, _TEXT, _UUID = 20, 17, 25, 2950
_STREAM = struct.Struct(">iiIi")
_VERSION_AND_TOPIC = struct.Struct(">IiqIi")
_ID_AND_STATE = struct.Struct(">Ii16sIi")
_METADATA = struct.Struct(">Ii")
_SALT = struct.Struct(">Ii16s")
_FIXED = sum(part.size for part in (_STREAM, _VERSION_AND_TOPIC, _ID_AND_STATE, _METADATA, _SALT)) - 4


def event_record(*, stream: str, version: int, topic: str, event_id: UUID, state: bytes, metadata: str, salt: bytes) -> bytes:
    """Return the record of an event, preceded by its length. `salt` has 16 bytes."""
    name, kind, cause = stream.encode(), topic.encode(), metadata.encode()
    length = _FIXED + len(name) + len(kind) + len(state) + len(cause)
    return b"".join(
        (
            _STREAM.pack(length, 7, _TEXT, len(name)),
            name,
            _VERSION_AND_TOPIC.pack(_BIGINT, 8, version, _TEXT, len(kind)),
            kind,
            _ID_AND_STATE.pack(_UUID, 16, event_id.bytes, _BYTEA, len(state)),
            state,
            _METADATA.pack(_TEXT, len(cause)),
            cause,
            _SALT.pack(_BYTEA, 16, salt),
        )
    )

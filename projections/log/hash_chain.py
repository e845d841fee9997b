"""The hashes of the log, byte for byte: a leaf for each event, a Merkle tree for each commit, a chain over the commits.

Trees and their domain separation (0x00 before a leaf, 0x01 before an interior node) are those of RFC 6962. `log_append()` in
schema.sql computes `chain_hash`, since position and time are known only there; everybody can compute all of it again.

The salt is random and known only together with its event. State and metadata have a salt of their own each, derived from it.
Without its salt, nobody can find out from the leaf what a part was, not even by trying: so either can be erased with its salt, and
the proofs of the log stay valid. docs/explanation/the-log.md says what is stored of an event then.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import sha256
from uuid import UUID

_GENESIS = b"medialedger log 1"
_INT = struct.Struct(">i")
_VERSION = struct.Struct(">q")
_PLACE = struct.Struct(">qqq")


def leaf(*, stream: str, version: int, topic: str, event_id: UUID, metadata: str, state: bytes, salt: bytes) -> bytes:
    """SHA-256(0x00 | int4 length, originator id | int8 version | int4 length, topic | event id | hidden metadata | hidden state).
    Integers are big-endian, texts UTF-8. See `hidden`."""
    return redacted_leaf(
        stream=stream,
        version=version,
        topic=topic,
        event_id=event_id,
        hidden_metadata=hidden(metadata.encode(), salt=salt, part=b"\1"),
        hidden_state=hidden(state, salt=salt, part=b"\2"),
    )


def redacted_leaf(*, stream: str, version: int, topic: str, event_id: UUID, hidden_metadata: bytes, hidden_state: bytes) -> bytes:
    """The leaf of an event whose metadata and state are given by their hidden hashes; of what is erased nothing else is known."""
    name, kind = stream.encode(), topic.encode()
    envelope = b"".join((_INT.pack(len(name)), name, _VERSION.pack(version), _INT.pack(len(kind)), kind, event_id.bytes))
    return sha256(b"\0" + envelope + hidden_metadata + hidden_state).digest()


def hidden(content: bytes, *, salt: bytes, part: bytes) -> bytes:
    """SHA-256(SHA-256(salt | part) | content); the part is 0x01 for metadata, 0x02 for state."""
    return sha256(sha256(salt + part).digest() + content).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """The Merkle tree hash of one leaf or more. Nodes are joined level by level and an odd one moves up as it is, which gives the
    tree of RFC 6962."""
    level = leaves
    while len(level) > 1:
        joined = [sha256(b"\1" + left + right).digest() for left, right in zip(level[::2], level[1::2], strict=False)]
        level = [*joined, level[-1]] if len(level) % 2 else joined
    return level[0]


def path(index: int, leaves: Sequence[bytes]) -> list[bytes]:
    """The hashes beside the way of a leaf to the root, the lowest first."""
    found, level = [], leaves
    while len(level) > 1:
        if index ^ 1 < len(level):
            found.append(level[index ^ 1])
        joined = [sha256(b"\1" + left + right).digest() for left, right in zip(level[::2], level[1::2], strict=False)]
        level = [*joined, level[-1]] if len(level) % 2 else joined
        index //= 2
    return found


def commit_leaf(*, first: int, count: int, recorded_micros: int, root: bytes) -> bytes:
    """SHA-256(0x00 | int8 first position | int8 number of events | int8 recorded time in microseconds since 1970 | root)."""
    return sha256(b"\0" + _PLACE.pack(first, count, recorded_micros) + root).digest()


def genesis(log_id: UUID) -> bytes:
    """The chain hash before the first commit: it tells one log from another."""
    return sha256(_GENESIS + log_id.bytes).digest()


def chain_hash(previous: bytes, *, leaf: bytes) -> bytes:
    """SHA-256(0x02 | previous chain hash | commit leaf)."""
    return sha256(b"\2" + previous + leaf).digest()

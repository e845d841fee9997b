"""The hashes of the log, byte for byte: a leaf for each event, a Merkle tree for each commit, a chain over the commits.

The trees and their domain separation (0x00 before a leaf, 0x01 before an interior node) are those of RFC 6962. `log_append()` in
schema.sql computes `chain_hash`, since position and time are known only there; anyone can recompute all of it.

The salt is random and stored only together with its event. State and metadata each have a salt of their own that is derived from
it. Without the salt it is impossible to find out from the leaf what a part contained, not even by guessing. So either part can be
erased together with its salt, and the proofs of the log remain valid. docs/explanation/the-log.md describes what is then stored of
an event.
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
    """Return SHA-256(0x00 | int4 length, originator id | int8 version | int4 length, topic | event id | hidden metadata | hidden
    state). Integers are big-endian, texts UTF-8. See `hidden`."""
    return redacted_leaf(
        stream=stream,
        version=version,
        topic=topic,
        event_id=event_id,
        hidden_metadata=hidden(metadata.encode(), salt=salt, part=b"\1"),
        hidden_state=hidden(state, salt=salt, part=b"\2"),
    )


def redacted_leaf(*, stream: str, version: int, topic: str, event_id: UUID, hidden_metadata: bytes, hidden_state: bytes) -> bytes:
    """Return the leaf of an event whose metadata and state are given as hidden hashes. This needs nothing of the content that was
    erased."""
    name, kind = stream.encode(), topic.encode()
    envelope = b"".join((_INT.pack(len(name)), name, _VERSION.pack(version), _INT.pack(len(kind)), kind, event_id.bytes))
    return sha256(b"\0" + envelope + hidden_metadata + hidden_state).digest()


def hidden(content: bytes, *, salt: bytes, part: bytes) -> bytes:
    """Return SHA-256(SHA-256(salt | part) | content). The part is 0x01 for metadata, 0x02 for state."""
    return sha256(sha256(salt + part).digest() + content).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """Return the Merkle tree hash of one or more leaves.

    Nodes are joined level by level and an odd node moves up unchanged, which results in the tree of RFC 6962.
    """
    level = leaves
    while len(level) > 1:
        joined = [sha256(b"\1" + left + right).digest() for left, right in zip(level[::2], level[1::2], strict=False)]
        level = [*joined, level[-1]] if len(level) % 2 else joined
    return level[0]


def path(index: int, leaves: Sequence[bytes]) -> list[bytes]:
    """Return the audit path of a leaf: the sibling hashes on its way to the root, the lowest first."""
    siblings, level = [], leaves
    while len(level) > 1:
        if index ^ 1 < len(level):
            siblings.append(level[index ^ 1])
        joined = [sha256(b"\1" + left + right).digest() for left, right in zip(level[::2], level[1::2], strict=False)]
        level = [*joined, level[-1]] if len(level) % 2 else joined
        index //= 2
    return siblings


def commit_leaf(*, first: int, count: int, recorded_micros: int, root: bytes) -> bytes:
    """Return SHA-256(0x00 | int8 first position | int8 number of events | int8 recorded time in microseconds since 1970 | root)."""
    return sha256(b"\0" + _PLACE.pack(first, count, recorded_micros) + root).digest()


def genesis(log_id: UUID) -> bytes:
    """Return the chain hash before the first commit. It tells one log from another."""
    return sha256(_GENESIS + log_id.bytes).digest()


def chain_hash(previous: bytes, *, leaf: bytes) -> bytes:
    """Return SHA-256(0x02 | previous chain hash | commit leaf)."""
    return sha256(b"\2" + previous + leaf).digest()

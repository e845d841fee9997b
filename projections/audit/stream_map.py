"""The sparse Merkle map of streams: it maps each stream to its last version and a hash over all of its leaves. This module does no
input or output.

The key of a stream is the SHA-256 of its name; its bits are the way from the root, the highest first. The hash of a part of the map
without keys is 32 zero bytes, that of a part with a single key is the hash of that key's leaf, and any other is SHA-256(0x05 | left
| right). So the root depends only on the content, and the length of proofs is logarithmic in the number of streams.

Parts with many keys are stored as nodes of 16 children; a part with few keys is computed from its streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from struct import Struct
from typing import Final, NamedTuple

CHILDREN: Final = 16
MOST: Final = 4
"""The most streams of a part without a node."""
_BITS: Final = 4
_VERSION: Final = Struct(">q")
_NAME: Final = b"medialedger stream 1"
_HASH: Final = 32
_CHILD: Final = _HASH + 1
NOTHING: Final = bytes(_HASH)


class MapPart(NamedTuple):
    """A part of the map and its hash. `keys` is 0, 1, or 2 for two or more keys."""

    keys: int
    hash: bytes


EMPTY: Final = MapPart(0, NOTHING)


@dataclass(frozen=True, slots=True)
class StreamHead:
    """A stream up to its last version."""

    key: bytes
    version: int
    hash: bytes

    def part(self) -> MapPart:
        """Return SHA-256(0x04 | key | int8 version | hash)."""
        return MapPart(1, sha256(b"\4" + self.key + _VERSION.pack(self.version) + self.hash).digest())

    def followed_by(self, leaf: bytes) -> StreamHead:
        """Return the head after one more event: SHA-256(0x03 | previous hash | leaf of the event)."""
        return StreamHead(self.key, self.version + 1, sha256(b"\3" + self.hash + leaf).digest())


def stream_key(name: str) -> bytes:
    return sha256(name.encode()).digest()


def empty_head(key: bytes) -> StreamHead:
    """Return the head of a stream without events: SHA-256("medialedger stream 1" | key)."""
    return StreamHead(key, 0, sha256(_NAME + key).digest())


def join(left: MapPart, right: MapPart) -> MapPart:
    keys = left.keys + right.keys
    if keys <= 1:
        return left if left.keys else right
    return MapPart(2, sha256(b"\5" + left.hash + right.hash).digest())


def join_all(parts: Sequence[MapPart]) -> MapPart:
    """Return the part that adjacent parts form. Their number is a power of two."""
    level = parts
    while len(level) > 1:
        level = [join(left, right) for left, right in zip(level[::2], level[1::2], strict=True)]
    return level[0]


def part_of(heads: Sequence[StreamHead], depth: int) -> MapPart:
    """Return the part of these streams that begins at this depth in bits."""
    if len(heads) < 2:
        return heads[0].part() if heads else EMPTY
    left = [head for head in heads if not _bit(head.key, depth)]
    right = [head for head in heads if _bit(head.key, depth)]
    return join(part_of(left, depth + 1), part_of(right, depth + 1))


def _bit(key: bytes, depth: int) -> int:
    return key[depth >> 3] >> (7 - (depth & 7)) & 1


def prefix(key: bytes, length: int) -> str:
    """Return the first hexadecimal digits of a key, which name the node there."""
    return key.hex()[:length]


def child_number(key: bytes, length: int) -> int:
    """Return the number of the child that contains the key, in a node with a prefix of this length."""
    return int(key.hex()[length], 16)


def children(content: bytes) -> list[MapPart]:
    """Return the children of a stored node."""
    return [MapPart(content[at], content[at + 1 : at + _CHILD]) for at in range(0, CHILDREN * _CHILD, _CHILD)]


def encode_node(parts: Iterable[MapPart]) -> bytes:
    return b"".join(bytes([part.keys]) + part.hash for part in parts)


def sibling_hashes(key: bytes, nodes: Sequence[Sequence[MapPart]], *, heads: Sequence[StreamHead]) -> list[bytes]:
    """Return the hashes next to the way from the root to the only key of a part.

    `nodes` are the nodes on the way, from the root; `heads` are the streams of the part behind the last node.
    """
    hashes: list[bytes] = []
    for length, node in enumerate(nodes):
        parts, number = list(node), child_number(key, length)
        while len(parts) > 1:
            if join_all(parts).keys < 2:
                return hashes
            half = len(parts) // 2
            inside, outside = (parts[:half], parts[half:]) if number < half else (parts[half:], parts[:half])
            hashes.append(join_all(outside).hash)
            parts, number = inside, number % half
    rest, depth = list(heads), len(nodes) * _BITS
    while len(rest) > 1:
        side = _bit(key, depth)
        hashes.append(part_of([head for head in rest if _bit(head.key, depth) != side], depth + 1).hash)
        rest = [head for head in rest if _bit(head.key, depth) == side]
        depth += 1
    return hashes

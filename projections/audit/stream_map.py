"""The sparse Merkle map of streams: for each its last version, and a hash over all of its leaves. Pure.

The key of a stream is the SHA-256 of its name; its bits are the way from the root, the highest first. A part of the map without
keys has 32 zero bytes as its hash, one with a single key the hash of that key's leaf, any other SHA-256(0x05 | left | right). So
the root depends on the content only, and proofs are as long as the logarithm of the number of streams.

Parts with many keys are kept as nodes of 16 children; one with a few is computed from its streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from struct import Struct
from typing import Final, NamedTuple

CHILDREN: Final = 16
MOST: Final = 4
"""Streams of a part that has no node."""
_BITS: Final = 4
_VERSION: Final = Struct(">q")
_NAME: Final = b"medialedger stream 1"
_HASH: Final = 32
_CHILD: Final = _HASH + 1
NOTHING: Final = bytes(_HASH)


class Part(NamedTuple):
    """The hash of a part of the map. `keys` are 0, 1 or 2, which stands for more."""

    keys: int
    hash: bytes


EMPTY: Final = Part(0, NOTHING)


@dataclass(frozen=True, slots=True)
class StreamHead:
    """A stream up to its last version."""

    key: bytes
    version: int
    hash: bytes

    def part(self) -> Part:
        """SHA-256(0x04 | key | int8 version | hash)."""
        return Part(1, sha256(b"\4" + self.key + _VERSION.pack(self.version) + self.hash).digest())

    def followed_by(self, leaf: bytes) -> StreamHead:
        """SHA-256(0x03 | hash before | leaf of the event)."""
        return StreamHead(self.key, self.version + 1, sha256(b"\3" + self.hash + leaf).digest())


def stream_key(name: str) -> bytes:
    return sha256(name.encode()).digest()


def begun(key: bytes) -> StreamHead:
    """A stream without events: SHA-256("medialedger stream 1" | key)."""
    return StreamHead(key, 0, sha256(_NAME + key).digest())


def joined(left: Part, right: Part) -> Part:
    keys = left.keys + right.keys
    if keys <= 1:
        return left if left.keys else right
    return Part(2, sha256(b"\5" + left.hash + right.hash).digest())


def whole(parts: Sequence[Part]) -> Part:
    """Of a power of two of neighbours."""
    level = parts
    while len(level) > 1:
        level = [joined(left, right) for left, right in zip(level[::2], level[1::2], strict=True)]
    return level[0]


def few(heads: Sequence[StreamHead], depth: int) -> Part:
    """A part that begins at this depth in bits, of its streams."""
    if len(heads) < 2:
        return heads[0].part() if heads else EMPTY
    left = [head for head in heads if not _bit(head.key, depth)]
    right = [head for head in heads if _bit(head.key, depth)]
    return joined(few(left, depth + 1), few(right, depth + 1))


def _bit(key: bytes, depth: int) -> int:
    return key[depth >> 3] >> (7 - (depth & 7)) & 1


def prefix(key: bytes, length: int) -> str:
    """The first hexadecimal digits of a key: the name of the node there."""
    return key.hex()[:length]


def child_number(key: bytes, length: int) -> int:
    """Which child of the node with a prefix of this length the key is in."""
    return int(key.hex()[length], 16)


def children(content: bytes) -> list[Part]:
    """Of a stored node."""
    return [Part(content[at], content[at + 1 : at + _CHILD]) for at in range(0, CHILDREN * _CHILD, _CHILD)]


def stored(parts: Iterable[Part]) -> bytes:
    return b"".join(bytes([part.keys]) + part.hash for part in parts)


def beside(key: bytes, nodes: Sequence[Sequence[Part]], *, heads: Sequence[StreamHead]) -> list[bytes]:
    """The hashes beside the way from the root to the only key of a part. `nodes` are those on the way, from the root, `heads` the
    streams of the part behind the last one."""
    found: list[bytes] = []
    for length, node in enumerate(nodes):
        parts, number = list(node), child_number(key, length)
        while len(parts) > 1:
            if whole(parts).keys < 2:
                return found
            half = len(parts) // 2
            inside, outside = (parts[:half], parts[half:]) if number < half else (parts[half:], parts[:half])
            found.append(whole(outside).hash)
            parts, number = inside, number % half
    rest, depth = list(heads), len(nodes) * _BITS
    while len(rest) > 1:
        side = _bit(key, depth)
        found.append(few([head for head in rest if _bit(head.key, depth) != side], depth + 1).hash)
        rest = [head for head in rest if _bit(head.key, depth) == side]
        depth += 1
    return found

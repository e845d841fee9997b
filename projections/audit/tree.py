"""The Merkle tree over all commits (RFC 6962) and its tiles as in C2SP tlog-tiles. This module does no input or output.

A tile has up to 256 hashes. The hashes of level 0 are the leaves of commits; each hash of a higher level is the root of a full tile
below it. The tiles of a tree suffice to compute the root of any of its sizes and every proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from projections.log.hash_chain import root

WIDTH: Final = 256
_BITS: Final = 8
_HASH: Final = 32
EMPTY: Final = sha256().digest()
"""The root of a tree without leaves."""

Node = Callable[[int, int], bytes]
"""A function that returns the hash of the complete subtree of a level, by its number from the left."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A place in the tree: `number` counts from the left."""

    level: int
    number: int


def tree_root(size: int, node: Node) -> bytes:
    return _range(0, size, node) if size else EMPTY


def inclusion(index: int, size: int, *, node: Node) -> list[bytes]:
    """Return the path of a leaf: the sibling hashes on its way to the root, the lowest first. RFC 6962, 2.1.1."""
    if not 0 <= index < size:
        raise ValueError(f"there is no leaf {index} in a tree of {size}")
    path, start, end = [], 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(_range(middle, end, node))
            end = middle
        else:
            path.append(_range(start, middle, node))
            start = middle
    return path[::-1]


def consistency(old: int, size: int, *, node: Node) -> list[bytes]:
    """Return the proof that the tree of `old` leaves is the beginning of this one. RFC 6962, 2.1.2."""
    if not 0 < old <= size:
        raise ValueError(f"a tree of {old} is not the beginning of a tree of {size}")
    proof, start, end, complete = [], 0, size, True
    while old != end:
        middle = start + _split(end - start)
        if old <= middle:
            proof.append(_range(middle, end, node))
            end = middle
        else:
            proof.append(_range(start, middle, node))
            start, complete = middle, False
    return proof[::-1] if complete else [_range(start, end, node), *proof[::-1]]


def _range(start: int, end: int, node: Node) -> bytes:
    """Return the hash over a range of leaves that begins at a subtree of the next power of two."""
    size = end - start
    if size & (size - 1) == 0:
        level = size.bit_length() - 1
        return node(level, start >> level)
    middle = start + _split(size)
    return sha256(b"\1" + _range(start, middle, node) + _range(middle, end, node)).digest()


def _split(size: int) -> int:
    """Return the largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1


def tiles_of(what: Callable[[Node], object]) -> set[Tile]:
    """Return the tiles that a computation reads."""
    needed: set[Tile] = set()

    def note(level: int, number: int) -> bytes:
        needed.add(_place(level, number)[0])
        return bytes(_HASH)

    what(note)
    return needed


def _place(level: int, number: int) -> tuple[Tile, int, int]:
    """Return the tile that a node is computed from, and the range of its hashes."""
    height = level % _BITS
    first = number << height
    return Tile(level // _BITS, first // WIDTH), first % WIDTH, 1 << height


def node_of(tiles: Mapping[Tile, bytes]) -> Node:
    """Return a node function over these tiles. It raises `LookupError` for a missing hash."""

    def node(level: int, number: int) -> bytes:
        tile, first, count = _place(level, number)
        content = tiles[tile]
        hashes = [content[at : at + _HASH] for at in range(first * _HASH, (first + count) * _HASH, _HASH)]
        if len(hashes[-1]) != _HASH:
            raise LookupError(f"tile {tile.number} of level {tile.level} is too short")
        return root(hashes)

    return node


@dataclass(slots=True)
class Edge:
    """The right edge of a tree of `size` leaves: its last tile of each level. Leaves are added there; `changed` holds the tiles to
    store."""

    size: int
    tiles: dict[Tile, bytes]
    changed: dict[Tile, bytes] = field(default_factory=dict)

    @staticmethod
    def places(size: int) -> list[Tile]:
        """Return the places of the partial tiles at the right edge of a tree."""
        tiles, level, width = [], 0, size
        while width:
            if width % WIDTH:
                tiles.append(Tile(level, width // WIDTH))
            level, width = level + 1, width // WIDTH
        return tiles

    def root(self) -> bytes:
        return tree_root(self.size, node_of(self.tiles))

    def add(self, leaves: Iterable[bytes]) -> None:
        for leaf in leaves:
            self._push(0, self.size, leaf)
            self.size += 1

    def _push(self, level: int, number: int, hash: bytes) -> None:
        tile = Tile(level, number // WIDTH)
        content = self.tiles.get(tile, b"") + hash
        if len(content) != (number % WIDTH + 1) * _HASH:
            raise LookupError(f"tile {tile.number} of level {level} is not whole")
        self.changed[tile] = content
        if len(content) < WIDTH * _HASH:
            self.tiles[tile] = content
            return
        self.tiles.pop(tile, None)
        full = [content[at : at + _HASH] for at in range(0, len(content), _HASH)]
        self._push(level + 1, tile.number, root(full))

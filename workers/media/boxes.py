"""Boxes of ISO base media files: ISO/IEC 14496-12. The bytes are untrusted: every length is checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap
from struct import Struct
from typing import Final, NamedTuple

from workers.media.errors import Unreadable

_HEADER: Final = Struct(">I4s")
_LARGE: Final = Struct(">Q")
LONGEST_HEAD: Final = 16
MOST_BOXES: Final = 10_000
"""The largest number of boxes within one box."""


@dataclass(frozen=True, slots=True)
class Box:
    """A box. `body` does not include the header."""

    kind: bytes
    body: memoryview


class BoxPlace(NamedTuple):
    """The place of a box. Its body begins at `begins`, after the header, and it ends at `end`."""

    kind: bytes
    at: int
    begins: int
    end: int


def places(data: memoryview | bytes | mmap, *, most: int = MOST_BOXES) -> Iterator[BoxPlace]:
    """Yield the places of the boxes that fill a box or a file. Raise `Unreadable`."""
    at, count, total = 0, 0, len(data)
    while at < total:
        size, kind, header = head(data[at : at + LONGEST_HEAD])
        if size > total - at:
            raise Unreadable("a box is longer than what holds it")
        count += 1
        if count > most:
            raise Unreadable("it has too many boxes")
        yield BoxPlace(kind, at, at + header, at + size)
        at += size


def boxes(data: memoryview) -> Iterator[Box]:
    """Return the boxes within a box or a file. Raise `Unreadable`."""
    return (Box(place.kind, data[place.begins : place.end]) for place in places(data))


def head(data: memoryview | bytes) -> tuple[int, bytes, int]:
    """Return the size of a box with its header, its type, and the size of the header. A box without an end is refused."""
    if len(data) < _HEADER.size:
        raise Unreadable("a box has no header")
    size, kind = _HEADER.unpack_from(data)
    header = _HEADER.size
    if size == 1:
        if len(data) < LONGEST_HEAD:
            raise Unreadable("a box has no header")
        (size,) = _LARGE.unpack_from(data, _HEADER.size)
        header = LONGEST_HEAD
    if size < header:
        raise Unreadable("a box has no end")
    return size, kind, header


def has_head(data: bytearray) -> bool:
    """Return True if the head of a box is complete. Eight bytes are enough for all but the largest boxes."""
    return len(data) >= LONGEST_HEAD or (len(data) >= _HEADER.size and data[:4] != b"\0\0\0\1")


def child(data: memoryview, *path: bytes) -> memoryview | None:
    """Return the body of the first box at this path; None if there is none."""
    for kind in path:
        body = next((box.body for box in boxes(data) if box.kind == kind), None)
        if body is None:
            return None
        data = body
    return data


def needed(data: memoryview, *path: bytes) -> memoryview:
    """Return the body of the box that `child` finds. Raise `Unreadable` if there is none."""
    body = child(data, *path)
    if body is None:
        raise Unreadable(f"it has no {path[-1].decode('latin-1')}")
    return body


class BoxStream:
    """Cuts a stream of bytes into the boxes of its top level, each of at most `most` bytes."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._rest = bytearray()

    def feed(self, piece: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the type and the bytes, with the head, of each box that is complete now. Raise `Unreadable`."""
        self._rest += piece
        while has_head(self._rest):
            size, kind, _ = head(bytes(self._rest[:LONGEST_HEAD]))
            if size > self._most:
                raise Unreadable("a box is too large")
            if len(self._rest) < size:
                return
            box = bytes(self._rest[:size])
            del self._rest[:size]
            yield kind, box


class Fields:
    """Reads the fields of a box one after another."""

    def __init__(self, body: memoryview) -> None:
        self._body = body
        self._at = 0

    def whole(self, size: int, *, signed: bool = False) -> int:
        """Read an integer of so many bytes. Raise `Unreadable`."""
        return int.from_bytes(self.take(size), "big", signed=signed)

    def take(self, size: int) -> memoryview:
        """Return the next `size` bytes. Raise `Unreadable` if there are fewer."""
        end = self._at + size
        if end > len(self._body):
            raise Unreadable("a box is too short")
        taken = self._body[self._at : end]
        self._at = end
        return taken

    def skip(self, size: int) -> None:
        self._at += size

    def rest(self) -> memoryview:
        return self._body[self._at :]

    @property
    def remaining(self) -> int:
        return len(self._body) - self._at

"""Boxes of ISO base media files: ISO/IEC 14496-12. Read from bytes that a stranger sent: every length is checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final

from workers.media.errors import Unreadable

_HEADER: Final = Struct(">I4s")
_LARGE: Final = Struct(">Q")
_MOST: Final = 10_000
"""Boxes within one box."""


@dataclass(frozen=True, slots=True)
class Box:
    """`body` is without the header."""

    kind: bytes
    body: memoryview


def boxes(data: memoryview) -> Iterator[Box]:
    """The boxes within a box, or a file. Raises `Unreadable`."""
    at, count = 0, 0
    while at < len(data):
        size, kind, header = head(data[at:])
        if size > len(data) - at:
            raise Unreadable("a box is longer than what holds it")
        count += 1
        if count > _MOST:
            raise Unreadable("it has too many boxes")
        yield Box(kind, data[at + header : at + size])
        at += size


def head(data: memoryview | bytes) -> tuple[int, bytes, int]:
    """The size of a box with its header, its type, and the size of the header. A box without an end is refused."""
    if len(data) < _HEADER.size:
        raise Unreadable("a box has no header")
    size, kind = _HEADER.unpack_from(data)
    if size == 1:
        if len(data) < 16:
            raise Unreadable("a box has no header")
        (size,) = _LARGE.unpack_from(data, 8)
        header = 16
    else:
        header = 8
    if size < header:
        raise Unreadable("a box has no end")
    return size, kind, header


def child(data: memoryview, *path: bytes) -> memoryview | None:
    """The body of the first box of this path."""
    for kind in path:
        found = next((one.body for one in boxes(data) if one.kind == kind), None)
        if found is None:
            return None
        data = found
    return data


def needed(data: memoryview, *path: bytes) -> memoryview:
    found = child(data, *path)
    if found is None:
        raise Unreadable(f"it has no {path[-1].decode('latin-1')}")
    return found


class Fields:
    """Reads the fields of a box one after another."""

    def __init__(self, body: memoryview) -> None:
        self._body = body
        self._at = 0

    def whole(self, size: int) -> int:
        end = self._at + size
        if end > len(self._body):
            raise Unreadable("a box is too short")
        value = int.from_bytes(self._body[self._at : end], "big")
        self._at = end
        return value

    def skip(self, size: int) -> None:
        self._at += size

    def rest(self) -> memoryview:
        return self._body[self._at :]

    @property
    def left(self) -> int:
        return len(self._body) - self._at

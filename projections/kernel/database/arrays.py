"""PostgreSQL arrays in their binary form, packed in one pass.

An append carries a dozen columns for up to hundreds of rows. psycopg's adaptation of lists inspects every element in Python;
packing a whole column of one element type is about five times as fast. The parameter types never vary, so each statement is
prepared once. The format is that of PostgreSQL's array_recv: dimensions, null flag, element type, then length-prefixed elements.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Any, TypeVar
from uuid import UUID

from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper
from psycopg.pq import Format

T = TypeVar("T")

_HEADER = struct.Struct(">iiIii")
_LENGTH = struct.Struct(">i")
_ELEMENT = struct.Struct(">I")
_EIGHT = struct.Struct(">iq")
_NULL = _LENGTH.pack(-1)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_eight = partial(_EIGHT.pack, 8)
"""Frame an integer."""


class PackedArray(bytes):
    """An array parameter that is ready to send. Subclasses define the element type."""

    ELEMENT: int
    ARRAY: int


class Texts(PackedArray):
    ELEMENT, ARRAY = 25, 1009


class Bytes(PackedArray):
    ELEMENT, ARRAY = 17, 1001


class Uuids(PackedArray):
    ELEMENT, ARRAY = 2950, 2951


class Bigints(PackedArray):
    ELEMENT, ARRAY = 20, 1016


class Booleans(PackedArray):
    ELEMENT, ARRAY = 16, 1000


class Instants(PackedArray):
    ELEMENT, ARRAY = 1184, 1185


class Records(bytes):
    """An array of a composite type, whose elements are already packed. The connection knows the number (OID) of their type."""


Packed = TypeVar("Packed", bound=PackedArray)


def _pack(kind: type[Packed], values: Sequence[T | None], frame: Callable[[T], bytes]) -> Packed:
    """Pack values into an array. `framed` returns an element preceded by its length."""
    nulls, count = values.count(None), len(values)
    if nulls == count:
        absent: Packed = _nulls(kind, count)
        return absent
    elements = b"".join([_NULL if value is None else frame(value) for value in values])
    return kind(_HEADER.pack(1, nulls > 0, kind.ELEMENT, count, 1) + elements)


@lru_cache(1024)
def _nulls(kind: type[Packed], count: int) -> Packed:
    """Return an array of nulls. Most columns of a row are null, and most appends write one row."""
    return kind(_HEADER.pack(1, 1, kind.ELEMENT, count, 1) + _NULL * count)


def _frame(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def texts(values: Sequence[str | None]) -> Texts:
    return _pack(Texts, values, lambda value: _frame(value.encode()))


def byte_strings(values: Sequence[bytes | None]) -> Bytes:
    return _pack(Bytes, values, _frame)


def uuids(values: Sequence[UUID | None]) -> Uuids:
    return _pack(Uuids, values, lambda value: b"\0\0\0\x10" + value.bytes)


def bigints(values: Sequence[int | None]) -> Bigints:
    return _pack(Bigints, values, _eight)


def booleans(values: Sequence[bool | None]) -> Booleans:
    return _pack(Booleans, values, lambda value: b"\0\0\0\1\1" if value else b"\0\0\0\1\0")


def instants(values: Sequence[datetime | None]) -> Instants:
    return _pack(Instants, values, lambda value: _eight((value - _EPOCH) // _MICROSECOND))


def records(elements: Sequence[bytes]) -> Records:
    """Return an array of elements that are preceded by their lengths."""
    return Records(_HEADER.pack(1, 0, 0, len(elements), 1) + b"".join(elements))


Packer = Callable[[Sequence[Any]], PackedArray]
PACKERS: dict[str, Packer] = {
    "text": texts,
    "bytea": byte_strings,
    "uuid": uuids,
    "bigint": bigints,
    "boolean": booleans,
    "timestamptz": instants,
}


def _dumper(kind: type[PackedArray]) -> type[Dumper]:
    class PackedDumper(Dumper):
        format = Format.BINARY
        oid = kind.ARRAY

        def dump(self, obj: bytes) -> bytes:
            return obj

    return PackedDumper


def register(context: AdaptContext) -> None:
    """Configure a connection to send packed arrays unchanged."""
    kinds: Iterable[type[PackedArray]] = (Texts, Bytes, Uuids, Bigints, Booleans, Instants)
    for kind in kinds:
        context.adapters.register_dumper(kind, _dumper(kind))


def register_records(context: AdaptContext, element: int) -> None:
    """Configure a connection to send `Records` of this composite type, given by its number (OID) in the database."""
    number = _ELEMENT.pack(element)

    class RecordsDumper(Dumper):
        format = Format.BINARY

        def dump(self, obj: bytes) -> bytes:
            return b"".join((obj[:8], number, obj[12:]))

    context.adapters.register_dumper(Records, RecordsDumper)

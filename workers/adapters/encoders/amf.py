"""AMF0, the encoding of the commands of RTMP, as far as a publisher writes and reads it."""

from __future__ import annotations

import struct
from collections.abc import Mapping

Value = float | bool | str | None | Mapping[str, "Value"]

_END = b"\0\0\x09"
_DEEPEST = 8
_MOST = 256
"""The limit for the values of a command, and for the members of an object."""


def encode(*values: Value) -> bytes:
    return b"".join(map(_encode, values))


def decode(data: bytes) -> list[Value]:
    """Return the values up to the first one that cannot be read, at most 256."""
    values: list[Value] = []
    at = 0
    try:
        while at < len(data) and len(values) < _MOST:
            value, at = _decode(data, at, deep=0)
            values.append(value)
    except (IndexError, struct.error, ValueError):
        pass
    return values


def _encode(value: Value) -> bytes:
    match value:
        case None:
            return b"\5"
        case bool():
            return b"\1" + bytes([value])
        case int() | float():
            return b"\0" + struct.pack(">d", value)
        case str():
            return b"\2" + _text(value)
    return b"\3" + b"".join(_text(key) + _encode(item) for key, item in value.items()) + _END


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">H", len(data)) + data


def _decode(data: bytes, at: int, *, deep: int) -> tuple[Value, int]:
    if deep > _DEEPEST:
        raise ValueError("too deep")
    kind, at = data[at], at + 1
    match kind:
        case 0:
            return struct.unpack_from(">d", data, at)[0], at + 8
        case 1:
            return bool(data[at]), at + 1
        case 2:
            return _read_text(data, at)
        case 3 | 8:
            return _read_object(data, at + (4 if kind == 8 else 0), deep=deep)
        case 5 | 6:
            return None, at
    raise ValueError(f"kind {kind}")


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    size = struct.unpack_from(">H", data, at)[0]
    if at + 2 + size > len(data):
        raise ValueError("cut")
    return data[at + 2 : at + 2 + size].decode(errors="replace"), at + 2 + size


def _read_object(data: bytes, at: int, *, deep: int) -> tuple[Value, int]:
    members_read: dict[str, Value] = {}
    members = 0
    while data[at : at + 3] != _END:
        key, at = _read_text(data, at)
        members_read[key], at = _decode(data, at, deep=deep + 1)
        members += 1
        if members > _MOST:
            raise ValueError("too many members")
    return members_read, at + 3

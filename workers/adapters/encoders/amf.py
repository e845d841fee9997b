"""AMF0, the encoding of the commands of RTMP: what a publisher writes and reads of it."""

from __future__ import annotations

import struct
from collections.abc import Mapping

Value = float | bool | str | None | Mapping[str, "Value"]

_END = b"\0\0\x09"
_DEEPEST = 8
_MOST = 256
"""Values of a command, and members of an object."""


def encoded(*values: Value) -> bytes:
    return b"".join(map(_encoded, values))


def decoded(data: bytes) -> list[Value]:
    """As far as it can be read, and 256 values at most."""
    found: list[Value] = []
    at = 0
    try:
        while at < len(data) and len(found) < _MOST:
            value, at = _decoded(data, at, deep=0)
            found.append(value)
    except (IndexError, struct.error, ValueError):
        pass
    return found


def _encoded(value: Value) -> bytes:
    match value:
        case None:
            return b"\5"
        case bool():
            return b"\1" + bytes([value])
        case int() | float():
            return b"\0" + struct.pack(">d", value)
        case str():
            return b"\2" + _text(value)
    return b"\3" + b"".join(_text(key) + _encoded(item) for key, item in value.items()) + _END


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">H", len(data)) + data


def _decoded(data: bytes, at: int, *, deep: int) -> tuple[Value, int]:
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
    found: dict[str, Value] = {}
    members = 0
    while data[at : at + 3] != _END:
        key, at = _read_text(data, at)
        found[key], at = _decoded(data, at, deep=deep + 1)
        members += 1
        if members > _MOST:
            raise ValueError("too many members")
    return found, at + 3

"""The Protection System Specific Header box (pssh), which holds the data of a DRM system: ISO/IEC 23001-7, section 8.1.

Widevine and PlayReady have version 0 here, as packagers write them; version 1 also lists the kids.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

_HEAD: Final = struct.Struct(">I4sI16s")  # size, type, version and flags in one, system id
_COUNT: Final = struct.Struct(">I")
_KID_BYTES: Final = 16
_FLAG_BITS: Final = 24


@dataclass(frozen=True, slots=True)
class Pssh:
    """The content of a box."""

    system_id: UUID
    data: bytes
    version: int = 0
    kids: Sequence[UUID] = ()


def box(system_id: UUID, data: bytes, *, version: int = 0, kids: Sequence[UUID] = ()) -> bytes:
    if version not in (0, 1) or (version == 0 and kids):
        raise ValueError("a pssh box has version 0, or version 1 with kids")
    listed = _COUNT.pack(len(kids)) + b"".join(kid.bytes for kid in kids) if version else b""
    body = listed + _COUNT.pack(len(data)) + data
    return _HEAD.pack(_HEAD.size + len(body), b"pssh", version << _FLAG_BITS, system_id.bytes) + body


def parsed(box_bytes: bytes) -> Pssh:
    """Parse exactly one box. A wrong size is an error, because playback would fail without a message with half a box."""
    if len(box_bytes) < _HEAD.size:
        raise ValueError("shorter than a pssh box")
    size, kind, word, system_id = _HEAD.unpack_from(box_bytes)
    if kind != b"pssh":
        raise ValueError("no pssh box")
    if size != len(box_bytes):
        raise ValueError("the size of the pssh box is wrong")
    if word not in (0, 1 << _FLAG_BITS):
        raise ValueError("a pssh box has version 0 or 1, and no flags")
    version = word >> _FLAG_BITS
    at, kids = _read_kids(box_bytes) if version else (_HEAD.size, ())
    return Pssh(UUID(bytes=system_id), _read_data(box_bytes, at), version, kids)


def _read_kids(box_bytes: bytes) -> tuple[int, Sequence[UUID]]:
    first = _HEAD.size + _COUNT.size
    end = first + _KID_BYTES * _read_count(box_bytes, _HEAD.size)
    if end > len(box_bytes):
        raise ValueError("the pssh box ends within its kids")
    return end, tuple(UUID(bytes=box_bytes[at : at + _KID_BYTES]) for at in range(first, end, _KID_BYTES))


def _read_data(box_bytes: bytes, at: int) -> bytes:
    data = box_bytes[at + _COUNT.size :]
    if _read_count(box_bytes, at) != len(data):
        raise ValueError("the data size of the pssh box is wrong")
    return data


def _read_count(box_bytes: bytes, at: int) -> int:
    if at + _COUNT.size > len(box_bytes):
        raise ValueError("the pssh box ends within a number")
    count: int = _COUNT.unpack_from(box_bytes, at)[0]
    return count

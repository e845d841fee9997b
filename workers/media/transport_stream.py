"""MPEG-2 transport streams: packets of 188 bytes. ISO/IEC 13818-1, 2.4.3."""

from __future__ import annotations

from mmap import mmap
from typing import Final

PACKET: Final = 188
_SYNC: Final = b"\x47"


def begins_packets(data: bytes | mmap) -> bool:
    """Return True if the data begin like packets. Their number does not matter."""
    return data[:1] == _SYNC


def is_packets(data: bytes | mmap) -> bool:
    """Return True if the data are a whole number of packets, and at least one."""
    syncs = data[::PACKET]
    return bool(syncs) and not len(data) % PACKET and syncs == _SYNC * len(syncs)

"""The binary form of a splice: `splice_info_section` with a `splice_insert`. SCTE 35, 9.6 and 9.7.3.

A splice marks where a programme is left, or returned to, on the clock of 90 kHz that time stamps of media use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CLOCK: Final = 90_000
_WRAP: Final = 2**33
_POLYNOMIAL: Final = 0x04C11DB7
_TABLE: Final = 0xFC
_ANY_TIER: Final = 0xFFF
_INSERT: Final = 5


@dataclass(frozen=True, slots=True)
class Splice:
    """A splice. `out` is True if the programme is left, and False if it is returned to. `at` is on the time line of the programme,
    in seconds; `shift` is the difference to the time in the media: the length of what was inserted before it. `duration` is that of
    the break in seconds, or None."""

    event: int
    out: bool
    at: float
    shift: float = 0.0
    duration: float | None = None

    def section(self) -> bytes:
        command = self._insert()
        adjustment = (-_ticks(self.shift)) % _WRAP
        body = bytes([0]) + adjustment.to_bytes(5, "big") + bytes([0])
        body += (_ANY_TIER << 12 | len(command)).to_bytes(3, "big") + bytes([_INSERT]) + command + bytes(2)
        section = bytes([_TABLE]) + (3 << 12 | len(body) + 4).to_bytes(2, "big") + body
        return section + crc32(section).to_bytes(4, "big")

    def _insert(self) -> bytes:
        """Return the command, for the whole programme, at a time. The return is a separate splice."""
        lasts = self.duration is not None
        head = self.event.to_bytes(4, "big") + bytes([0x7F, self.out << 7 | 1 << 6 | lasts << 5 | 0x0F])
        time = (1 << 39 | 0x3F << 33 | _ticks(self.at) % _WRAP).to_bytes(5, "big")
        broken = b"" if self.duration is None else (0x3F << 33 | _ticks(self.duration) % _WRAP).to_bytes(5, "big")
        return head + time + broken + (1).to_bytes(2, "big") + bytes(2)


def crc32(data: bytes) -> int:
    """Return the CRC-32 of MPEG-2 (ISO/IEC 13818-1, annex A), which `zlib` does not have: not reflected, and not inverted at the
    end."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ _POLYNOMIAL if crc & 0x80000000 else crc << 1) & 0xFFFFFFFF
    return crc


def _ticks(seconds: float) -> int:
    return round(seconds * CLOCK)

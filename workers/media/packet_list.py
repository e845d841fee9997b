"""Parses the lists that the muxers framecrc and framehash of ffmpeg write: a line for each packet or frame of a track."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

_TIME_BASE: Final = "#tb 0:"
_FIELDS: Final = 6


class ListedPacket(NamedTuple):
    """A packet or frame of a list.

    `at` is the time at which it is shown and `lasts` its duration, in seconds; `size` is in bytes. `remarks` hold further data,
    such as new parameters of its codec.
    """

    at: float
    lasts: float
    size: int
    digest: str
    remarks: str


class PacketList:
    """Parses a list line by line, while ffmpeg writes it or later."""

    def __init__(self) -> None:
        self._above, self._below = 1, 1

    def packet(self, line: str) -> ListedPacket | None:
        """Return the packet of a line; None for a line without one."""
        if line.startswith(_TIME_BASE):
            above, _, below = line.removeprefix(_TIME_BASE).strip().partition("/")
            self._above, self._below = int(above), int(below)
        fields = line.split(",")
        if line.startswith("#") or len(fields) < _FIELDS:
            return None
        return ListedPacket(
            self._seconds(fields[2]), self._seconds(fields[3]), int(fields[4]), fields[5].strip(), ",".join(fields[_FIELDS:])
        )

    def _seconds(self, ticks: str) -> float:
        return int(ticks) * self._above / self._below


def listed_packets(lines: Iterable[str]) -> Iterator[ListedPacket]:
    reader = PacketList()
    return (packet for line in lines if (packet := reader.packet(line)) is not None)

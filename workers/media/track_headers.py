"""The headers with which pictures and sounds of a transport stream begin: the parameters for a decoder, and the places where they
change.

Nothing is decoded, and packets within a picture are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from workers.media.transport_stream import PACKET

WRAP: Final = 2**33 / 90_000
"""Seconds after which time stamps of MPEG-TS restart."""
_SEEN: Final = 3
"""The number of packets of a picture in which its headers are searched."""
_BEGINS: Final = re.compile(rb"[\x40-\x7f\xc0-\xff]")
"""The second byte of a packet in which a picture or some sound begins."""
_HEADERS: Final[Mapping[int, re.Pattern[bytes]]] = {
    0x1B: re.compile(rb"\x00\x00\x01[\x07\x27\x47\x67](.{4,}?)(?=\x00\x00[\x00\x01]|$)", re.DOTALL),
    0x24: re.compile(rb"\x00\x00\x01\x42.(.{4,}?)(?=\x00\x00[\x00\x01]|$)", re.DOTALL),
    0x02: re.compile(rb"\x00\x00\x01\xb3(.{4})", re.DOTALL),
    0x01: re.compile(rb"\x00\x00\x01\xb3(.{4})", re.DOTALL),
}
"""The headers that describe a picture of H.264, HEVC and MPEG-2, by the type of the stream. ISO/IEC 13818-1, 2.4.4.9."""
_SOUNDS: Final = frozenset({0x03, 0x04, 0x06, 0x0F, 0x81, 0x87})


@dataclass(frozen=True, slots=True)
class Sign:
    """A place in a segment from which on a track has other headers. `after` is the time in seconds after its first picture, `place`
    the number of bytes after its beginning. `rest` is everything from there on, with the tables of the stream: a complete stream.
    """

    track: str
    headers: bytes
    after: float
    place: int
    rest: bytes = field(repr=False)


class Headers:
    """The headers of each track of a transport stream, as its segments are read."""

    def __init__(self) -> None:
        self._tracks: dict[int, tuple[str, int]] = {}
        self._last: dict[str, bytes] = {}

    def signs(self, data: bytes) -> Iterator[Sign]:
        """Yield the places where the headers of a track in a segment differ from those before. The first headers of a track are no
        change."""
        tables, begins = self._tables(data), None
        for place, name, kind, body in self._find_starts(data):
            stamp = _stamp(body)
            begins = stamp if begins is None and name == "v" else begins
            headers = _headers(kind, body[9 + body[8] :])
            if headers is None:
                continue
            before = self._last.get(name, headers)
            self._last[name] = headers
            if headers != before:
                late = 0.0 if stamp is None or begins is None else (stamp - begins + WRAP / 2) % WRAP - WRAP / 2
                yield Sign(name, headers, late, place, tables + data[place:])

    def _find_starts(self, data: bytes) -> Iterator[tuple[int, str, int, bytes]]:
        """Yield the place of each picture and sound, its track, its type and its first bytes."""
        for match in _BEGINS.finditer(data[1::PACKET]):
            place = match.start() * PACKET
            name, kind = self._tracks.get(_pid(data, place), ("", 0))
            if name:
                body = _body(data, place, pid=_pid(data, place), packets=_SEEN if name == "v" else 1)
                if body[:3] == b"\0\0\1" and len(body) >= 9:
                    yield place, name, kind, body

    def _tables(self, data: bytes) -> bytes:
        """Return the packets of the first tables, and read the tracks from them."""
        programmes = b""
        for place in range(0, len(data) - PACKET + 1, PACKET):
            if not data[place + 1] & 0x40:
                continue
            pid, packet = _pid(data, place), data[place : place + PACKET]
            if pid == 0 and not programmes:
                programmes = packet
            elif programmes and pid == _map_pid(programmes):
                self._tracks = dict(_list_tracks(_payload(packet)))
                return programmes + packet
        return b""


def _pid(data: bytes, place: int) -> int:
    return (data[place + 1] & 0x1F) << 8 | data[place + 2]


def _payload(packet: bytes) -> bytes:
    if not packet[3] & 0x10:
        return b""
    return packet[5 + packet[4] :] if packet[3] & 0x20 else packet[4:]


def _body(data: bytes, place: int, *, pid: int, packets: int) -> bytes:
    """Return the data that begin in a packet, up to the end of the given number of packets."""
    body, remaining = _payload(data[place : place + PACKET]), packets - 1
    for other in range(place + PACKET, min(place + 100 * PACKET, len(data)), PACKET):
        if not remaining or (_pid(data, other) == pid and data[other + 1] & 0x40):
            break
        if _pid(data, other) == pid:
            body += _payload(data[other : other + PACKET])
            remaining -= 1
    return body


def _map_pid(packet: bytes) -> int:
    """Return the PID of the packets that list the tracks of the first programme; -1 if the table has none."""
    table = _payload(packet)
    table = table[1 + table[0] :] if table else b""
    for at in range(8, min(len(table) - 4, 3 + ((table[1] & 0x0F) << 8 | table[2]) - 4) if len(table) > 8 else 0, 4):
        if table[at : at + 2] != b"\0\0":
            return (table[at + 2] & 0x1F) << 8 | table[at + 3]
    return -1


def _list_tracks(payload: bytes) -> Iterator[tuple[int, tuple[str, int]]]:
    """Yield the packet identifiers of the first picture and of all sounds of a programme."""
    table = payload[1 + payload[0] :] if payload else b""
    if len(table) < 12:
        return
    ends = min(3 + ((table[1] & 0x0F) << 8 | table[2]) - 4, len(table))
    at = 12 + ((table[10] & 0x0F) << 8 | table[11])
    pictures = sounds = 0
    while at + 5 <= ends:
        kind, pid = table[at], (table[at + 1] & 0x1F) << 8 | table[at + 2]
        if kind in _HEADERS and not pictures:
            pictures += 1
            yield pid, ("v", kind)
        elif kind in _SOUNDS:
            yield pid, (f"a{sounds}", kind)
            sounds += 1
        at += 5 + ((table[at + 3] & 0x0F) << 8 | table[at + 4])


def _headers(kind: int, data: bytes) -> bytes | None:
    """Return the headers that a decoder needs; None if the data do not begin with them."""
    if kind in _HEADERS:
        match = _HEADERS[kind].search(data)
        return match[1] if match is not None else None
    if len(data) < 7:
        return None
    if data[:2] == b"\x0b\x77":  # ETSI TS 102 366: rate, and coding of the channels
        return bytes((data[4], data[5] & 0xF8)) if data[5] >> 3 > 10 else bytes((data[4] & 0xC0, data[5] & 0xF8, data[6] & 0xE0))
    if data[0] == 0xFF and data[1] & 0xF6 == 0xF0:  # ADTS: profile, rate, channels
        return bytes((data[2] & 0xFD, data[3] & 0xC0))
    if data[0] == 0xFF and data[1] & 0xE0 == 0xE0:  # MPEG-1 and 2: layer, rate, mono or not
        return bytes((data[1] & 0x1E, data[2] & 0x0C, data[3] & 0xC0 == 0xC0))
    return None


def _stamp(body: bytes) -> float | None:
    at = body[9:14]
    if not body[7] & 0x80 or len(at) < 5:
        return None
    return ((at[0] >> 1 & 7) << 30 | at[1] << 22 | (at[2] >> 1) << 15 | at[3] << 7 | at[4] >> 1) / 90_000

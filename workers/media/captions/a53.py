"""Captions in the data of a picture: ATSC A/53 part 4, in SEI messages of H.264 and HEVC and in user data of MPEG-2.

Each access unit carries up to 31 triples: pairs of CEA-608, and bytes of CEA-708 packets. `caption_data` returns those of one
access unit, and `CaptionFinder` records which captions have text. Pictures are coded in another order than they are shown in: pass
the triples to the finder in the order of presentation.

The bytes are untrusted. Nothing here raises an error because of them, and the work is bounded by their length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

MARK: Final = b"GA94\x03"
_MESSAGE: Final = b"\xb5\x00\x31" + MARK
_USER_DATA: Final = b"\x00\x00\x01\xb2" + MARK
_REGISTERED: Final = 4
"""The payload type of an SEI message with user data that are registered by ITU-T T.35."""
_LONGEST_SEI: Final = 65_536
_MOST_UNITS: Final = 4_096
"""The largest number of NAL units of an access unit that are examined, and of SEI messages of a unit."""
_MOST_TRIPLES: Final = 1_024
"""The largest number of triples of an access unit. A/53 allows 31."""


class Triple(NamedTuple):
    """Two bytes of caption data. `type` is 0 or 1 for a pair of CEA-608 in field 1 or 2, 3 for the first two bytes of a CEA-708
    packet, and 2 for its further bytes."""

    type: int
    first: int
    second: int


class CaptionServices(NamedTuple):
    """The captions that had text. `channels` are those of CEA-608, `CC1` to `CC4`, and `services` those of CEA-708, 1 to 63."""

    channels: tuple[str, ...]
    services: tuple[int, ...]

    def __bool__(self) -> bool:
        return bool(self.channels or self.services)

    def __or__(self, other: CaptionServices) -> CaptionServices:
        channels, services = {*self.channels, *other.channels}, {*self.services, *other.services}
        return CaptionServices(tuple(sorted(channels)), tuple(sorted(services)))


NO_CAPTIONS: Final = CaptionServices((), ())


def caption_data(unit: bytes, codec: str, *, length_size: int = 4) -> Sequence[Triple]:
    """Return the valid triples of an access unit, in order. `codec` is `h264`, `hevc` or `mpeg2video`; for another codec there are
    none. `length_size` is the number of bytes of the length before each NAL unit, 0 if start codes are before them (Annex B)."""
    if MARK not in unit:
        return ()
    triples: list[Triple] = []
    for payload in _payloads(unit, codec, length_size):
        triples += _triples(payload)
        if len(triples) >= _MOST_TRIPLES:
            break
    return triples[:_MOST_TRIPLES]


def _payloads(unit: bytes, codec: str, length_size: int) -> Iterator[bytes]:
    """Yield the bytes after the mark up to the end of each message."""
    if codec == "mpeg2video":
        at = unit.find(_USER_DATA)
        while at >= 0:
            begin = at + len(_USER_DATA)
            end = unit.find(b"\x00\x00\x01", begin)
            yield unit[begin : begin + _LONGEST_SEI if end < 0 else min(end, begin + _LONGEST_SEI)]
            at = unit.find(_USER_DATA, begin)
    elif codec in ("h264", "hevc"):
        for nal in _with_start_codes(unit) if length_size == 0 else _with_lengths(unit, length_size):
            if (header := _sei_header(nal, codec)) and MARK in nal:
                yield from _messages(nal[header:].replace(b"\x00\x00\x03", b"\x00\x00"))


def _with_lengths(unit: bytes, length_size: int) -> Iterator[bytes]:
    at = 0
    for _ in range(_MOST_UNITS):
        begin = at + length_size
        size = int.from_bytes(unit[at:begin], "big")
        if begin >= len(unit):
            return
        yield unit[begin : begin + min(size, _LONGEST_SEI)]
        at = begin + size


def _with_start_codes(unit: bytes) -> Iterator[bytes]:
    at = unit.find(b"\x00\x00\x01")
    for _ in range(_MOST_UNITS):
        if at < 0:
            return
        begin = at + 3
        at = unit.find(b"\x00\x00\x01", begin)
        end = len(unit) if at < 0 else at
        yield unit[begin : min(end, begin + _LONGEST_SEI)]


def _sei_header(nal: bytes, codec: str) -> int:
    """Return the size in bytes of the header of a NAL unit with SEI messages, 0 for other units."""
    if not nal:
        return 0
    if codec == "h264":
        return 1 if nal[0] & 0x1F == 6 else 0
    return 2 if nal[0] >> 1 & 0x3F in (39, 40) else 0


def _messages(sei: bytes) -> Iterator[bytes]:
    at = 0
    for _ in range(_MOST_UNITS):
        kind, at = _read_extended(sei, at)
        size, at = _read_extended(sei, at)
        if at >= len(sei):
            return
        if kind == _REGISTERED and sei.startswith(_MESSAGE, at):
            yield sei[at + len(_MESSAGE) : at + size]
        at += size


def _read_extended(sei: bytes, at: int) -> tuple[int, int]:
    """Return a number that is the sum of bytes up to the first that is not 255, and the position after it."""
    value = 0
    while at < len(sei) and sei[at] == 0xFF:
        value += 0xFF
        at += 1
    return (value + sei[at], at + 1) if at < len(sei) else (value, at)


def _triples(payload: bytes) -> Iterator[Triple]:
    """Yield the triples of `cc_data`, which begins with flags and the count, and an unused byte."""
    if len(payload) < 2 or not payload[0] & 0x40:
        return
    for at in range(2, min(2 + 3 * (payload[0] & 0x1F), len(payload) - 2), 3):
        if payload[at] & 0x04:
            yield Triple(payload[at] & 0x03, payload[at + 1], payload[at + 2])


@dataclass
class CaptionFinder:
    """Records which captions have text. The cost of an access unit does not depend on earlier ones."""

    _fields: tuple[_Field, _Field] = field(default_factory=lambda: (_Field(("CC1", "CC2")), _Field(("CC3", "CC4"))))
    _packets: _Packets = field(default_factory=lambda: _Packets())
    units: int = 0
    """The number of access units that were examined."""

    def take(self, triples: Iterable[Triple]) -> None:
        """Take the triples of the next access unit."""
        self.units += 1
        for triple in triples:
            if triple.type < 2:
                self._fields[triple.type].take(triple.first & 0x7F, triple.second & 0x7F)
            else:
                self._packets.take(triple)

    def services(self) -> CaptionServices:
        channels = self._fields[0].with_text | self._fields[1].with_text
        return CaptionServices(tuple(sorted(channels)), tuple(sorted(self._packets.with_text)))


class _Field:
    """A field of CEA-608: two channels of captions. Its two channels of text and the data about programmes are no captions."""

    def __init__(self, channels: tuple[str, str]) -> None:
        self._channels = channels
        self._channel = 0
        self._captions = [False, False]
        """True if the channel is in a caption mode, for both channels."""
        self._programme_data = False
        self.with_text: set[str] = set()

    def take(self, first: int, second: int) -> None:
        """Take a pair without its parity bits."""
        if 0x10 <= first < 0x20:
            self._programme_data = False
            self._channel = first >> 3 & 1
            self._control(first & 0x17, second)
        elif 0 < first < 0x10:
            self._programme_data = first != 0x0F
        elif first >= 0x20 and not self._programme_data:
            self._text()

    def _control(self, first: int, second: int) -> None:
        if first in (0x14, 0x15) and 0x20 <= second < 0x30:
            if second in (0x20, 0x25, 0x26, 0x27, 0x29, 0x2F):
                self._captions[self._channel] = True
            elif second in (0x2A, 0x2B):
                self._captions[self._channel] = False
        elif first in (0x11, 0x12, 0x13) and 0x20 <= second < 0x40 and not (first == 0x11 and second < 0x30):
            self._text()

    def _text(self) -> None:
        if self._captions[self._channel]:
            self.with_text.add(self._channels[self._channel])


_LONGEST_PACKET: Final = 128
_EXTENDED_SERVICE: Final = 7
_C1_PARAMETERS: Final = {
    **dict.fromkeys((0x88, 0x89, 0x8A, 0x8B, 0x8C, 0x8D), 1),
    0x90: 2,
    0x91: 3,
    0x92: 2,
    0x97: 4,
    **dict.fromkeys(range(0x98, 0xA0), 6),
}


class _Packets:
    """The packets of CEA-708."""

    def __init__(self) -> None:
        self._packet = bytearray()
        self.with_text: set[int] = set()

    def take(self, triple: Triple) -> None:
        if triple.type == 3:
            self._packet.clear()
        elif not self._packet:
            return
        self._packet += bytes((triple.first, triple.second))
        size = (self._packet[0] & 0x3F) * 2 or _LONGEST_PACKET
        if len(self._packet) >= size:
            self._services(bytes(self._packet[1:size]))
            self._packet.clear()

    def _services(self, packet: bytes) -> None:
        at = 0
        while at < len(packet) and packet[at]:
            service, size = packet[at] >> 5, packet[at] & 0x1F
            at += 1
            if service == _EXTENDED_SERVICE and at < len(packet):
                service = packet[at] & 0x3F
                at += 1
            if service and _has_text(packet[at : at + size]):
                self.with_text.add(service)
            at += size


def _has_text(block: bytes) -> bool:
    """Return True if a block of a service has a visible character between its commands and their parameters."""
    at = 0
    while at < len(block):
        code = block[at]
        if 0x20 < code < 0x80 or code >= 0xA0:
            return True
        at += 1 + (_c0_parameters(block, at) if code < 0x20 else _C1_PARAMETERS.get(code, 0))
    return False


def _c0_parameters(block: bytes, at: int) -> int:
    """Return the number of parameters of a control code below 0x20. EXT1 (0x10) selects a second table, whose characters are
    symbols and accents."""
    code = block[at]
    return 2 if code >= 0x18 else int(code >= 0x10)

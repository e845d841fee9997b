"""CMAF as ffmpeg writes it to a pipe: headers and fragments of one track (ISO/IEC 14496-12 and 23000-19).

Read here, so that all publishing points get the same bytes with the same borders, and no program needs an address of theirs."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from workers.media.errors import Unreadable
from workers.media.fragments import MOST_SAMPLES, PER_SAMPLE

LARGEST: Final = 64 * 1024 * 1024
"""Bytes of one box: ten seconds of 50 Mbit/s. An encoder here writes half a second."""
_LARGEST_MOOF: Final = 4 * 1024 * 1024
_LARGEST_SAMPLE: Final = 8 * 1024 * 1024
"""Bytes of one frame. FLV has no place for 16 MiB."""
_MOST_BOXES: Final = 10_000
_DEEPEST: Final = 8
_SIZE_BYTES: Final = 4
"""Of the size of a descriptor."""
_OVERHEAD: Final = 200
"""Bytes of memory for each sample, beside its media."""
_HEAD: Final = 8
_NOT_SYNC: Final = 0x10000
_CONTAINERS: Final = frozenset({b"moov", b"trak", b"mdia", b"minf", b"stbl", b"moof", b"traf", b"mvex"})


class Boxes:
    """Cuts a stream of bytes into the boxes of its top level."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, piece: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Type and bytes, with the head, of each box that is complete now."""
        self._rest += piece
        while len(self._rest) >= _HEAD:
            size, kind = struct.unpack_from(">I4s", self._rest)
            if not _HEAD <= size <= LARGEST:
                raise Unreadable(f"a box of {size} bytes")
            if len(self._rest) < size:
                return
            box = bytes(self._rest[:size])
            del self._rest[:size]
            yield kind, box


@dataclass(frozen=True, slots=True)
class Sample:
    """`duration` and `shift`, of the time that it is shown at, are in ticks."""

    size: int
    duration: int
    shift: int
    key: bool


@dataclass(frozen=True, slots=True)
class Fragment:
    """`time` and `duration` are in ticks, `data` are moof and mdat."""

    time: int
    duration: int
    data: bytes = field(repr=False)
    samples: Sequence[Sample] = field(repr=False)
    media: int = 0
    """Where in `data` the first sample begins."""

    @property
    def key(self) -> bool:
        return bool(self.samples) and self.samples[0].key

    @property
    def weight(self) -> int:
        """Bytes of memory."""
        return len(self.data) + _OVERHEAD * len(self.samples)


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a track. `codec` as RFC 6381 has it, `configuration` is that of the decoder."""

    data: bytes = field(repr=False)
    timescale: int
    codec: str
    configuration: bytes = field(repr=False)
    width: int = 0
    height: int = 0


def header(data: bytes) -> Header:
    """Of ftyp and moov."""
    boxes = {kind: (at, end) for kind, at, end in _walk(data, 0, end=len(data))}
    try:
        at, _ = boxes[b"mdhd"]
        timescale = struct.unpack_from(">I", data, at + (20 if data[at] else 12))[0]
        if not timescale:
            raise Unreadable("a track without a timescale")
        entry = boxes[b"stsd"][0] + 8
        kind = data[entry + 4 : entry + 8]
        if kind == b"avc1":
            width, height = struct.unpack_from(">HH", data, entry + 32)
            configuration = _inside(data, entry + 86, name=b"avcC")
            if len(configuration) < 4:
                raise Unreadable("a configuration of H.264 that is cut")
            return Header(data, timescale, f"avc1.{configuration[1:4].hex()}", configuration, width, height)
        if kind == b"mp4a":
            descriptor = _inside(data, entry + 36, name=b"esds")
            return Header(data, timescale, "mp4a.40.2", _specific_config(descriptor))
    except (KeyError, IndexError, struct.error) as fault:
        raise Unreadable("a header that cannot be read") from fault
    raise Unreadable("a header of another codec")


def fragment(moof: bytes, mdat: bytes, *, shift: int = 0) -> Fragment:
    """`shift`, in ticks, is added to its time. What it costs is bounded by the bytes that are there, not by what they claim."""
    if len(moof) > _LARGEST_MOOF:
        raise Unreadable(f"a description of {len(moof)} bytes")
    data = bytearray(moof)
    boxes = {kind: (at, end) for kind, at, end in _walk(moof, 0, end=len(moof))}
    try:
        at, _ = boxes[b"tfdt"]
        if moof[at] != 1:
            raise Unreadable("a time of 32 bits")
        time = struct.unpack_from(">Q", moof, at + 4)[0] + shift
        struct.pack_into(">Q", data, at + 4, time)
        defaults = _defaults(moof, boxes[b"tfhd"][0])
        samples, offset = _samples(moof, *boxes[b"trun"], defaults=defaults, most=min(MOST_SAMPLES, len(mdat)))
    except (KeyError, IndexError, struct.error) as fault:
        raise Unreadable("a fragment that cannot be read") from fault
    if offset < 0 or offset + sum(one.size for one in samples) > len(moof) + len(mdat):
        raise Unreadable("a fragment with less media than it claims")
    return Fragment(time, sum(one.duration for one in samples), bytes(data) + mdat, samples, offset)


def _walk(data: bytes, at: int, *, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Each box: its type, where its content begins and ends."""
    count, ends = 0, [end]
    while ends:
        if at + _HEAD > ends[-1]:
            at = ends.pop()
            continue
        size, kind = struct.unpack_from(">I4s", data, at)
        if size < _HEAD or at + size > ends[-1]:
            raise Unreadable("a box that is longer than what it is in")
        count += 1
        if count > _MOST_BOXES:
            raise Unreadable("too many boxes")
        yield kind, at + _HEAD, at + size
        if kind not in _CONTAINERS:
            at += size
            continue
        ends.append(at + size)
        at += _HEAD
        if len(ends) > _DEEPEST:
            raise Unreadable("boxes that are too deep in each other")


def _inside(data: bytes, at: int, *, name: bytes) -> bytes:
    """The content of a box of a sample entry, which begins at `at`."""
    while True:
        size, kind = struct.unpack_from(">I4s", data, at)
        if kind == name:
            if size < _HEAD or at + size > len(data):
                raise Unreadable("a sample entry that is cut")
            return data[at + _HEAD : at + size]
        if size < _HEAD:
            raise Unreadable("a sample entry that cannot be read")
        at += size


def _specific_config(descriptor: bytes) -> bytes:
    """AudioSpecificConfig: the content of the descriptor with the tag 5 (ISO/IEC 14496-1)."""
    at = 4
    while at < len(descriptor):
        tag, at = descriptor[at], at + 1
        size = 0
        for _ in range(_SIZE_BYTES):
            byte, at = descriptor[at], at + 1
            size = size << 7 | byte & 0x7F
            if not byte & 0x80:
                break
        else:
            raise Unreadable("a descriptor without an end")
        if tag == 5:
            return descriptor[at : at + size]
        at += {3: 3, 4: 13}.get(tag, size)
    raise Unreadable("no configuration of AAC")


def _defaults(moof: bytes, at: int) -> tuple[int, int, int]:
    """Duration, size and flags that samples have by default."""
    flags = int.from_bytes(moof[at + 1 : at + 4])
    place = at + 8 + (8 if flags & 1 else 0) + (4 if flags & 2 else 0)
    found = []
    for bit in (0x8, 0x10, 0x20):
        found.append(struct.unpack_from(">I", moof, place)[0] if flags & bit else 0)
        place += 4 if flags & bit else 0
    return found[0], found[1], found[2]


def _samples(moof: bytes, at: int, end: int, /, *, defaults: tuple[int, int, int], most: int) -> tuple[Sequence[Sample], int]:
    """And where in the fragment the first of them begins."""
    flags = int.from_bytes(moof[at + 1 : at + 4])
    count, place = struct.unpack_from(">I", moof, at + 4)[0], at + 8
    offset, first = 0, None
    if flags & 0x1:
        offset, place = struct.unpack_from(">i", moof, place)[0], place + 4
    if flags & 0x4:
        first, place = struct.unpack_from(">I", moof, place)[0], place + 4
    told = [bool(flags & bit) for bit in PER_SAMPLE]
    if count > most or count * 4 * sum(told) > end - place:
        raise Unreadable("a fragment with fewer samples than it claims, or too many")
    samples = []
    for index in range(count):
        values = []
        for present, usual, kind in zip(told, (*defaults, 0), (">I", ">I", ">I", ">i"), strict=True):
            values.append(struct.unpack_from(kind, moof, place)[0] if present else usual)
            place += 4 if present else 0
        if values[1] > _LARGEST_SAMPLE:
            raise Unreadable(f"a sample of {values[1]} bytes")
        own = first if first is not None and index == 0 else values[2]
        samples.append(Sample(values[1], values[0], values[3], not own & _NOT_SYNC))
    return samples, offset

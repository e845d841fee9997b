"""Fragmented MP4, box by box, as small as a parser accepts it."""

from __future__ import annotations

from struct import pack
from typing import Final

SCALE: Final = 1000
"""Ticks a second of all tracks."""
AVC: Final = ("avc1", "avcC", bytes([1, 0x64, 0, 0x1F]))
"""A codec: the type of the sample entry, the type and the body of the box in it."""
AAC: Final = ("mp4a", "esds", bytes(4) + bytes([3, 22, 0, 0, 0, 4, 17, 0x40]) + bytes(12) + bytes([5, 2, 0x12, 0x10]))
Codec = tuple[str, str, bytes]


def box(kind: str, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return pack(">I", len(body) + 8) + kind.encode("latin-1") + body


def init(*codecs: Codec) -> bytes:
    """An initialization section with one track of each codec."""
    tracks = [_track(number, codec) for number, codec in enumerate(codecs, 1)]
    extends = [box("trex", pack(">6I", 0, number, 1, 0, 0, 0)) for number in range(1, len(codecs) + 1)]
    return box("ftyp", b"cmfc", bytes(4)) + box("moov", *tracks, box("mvex", *extends))


def fragment(time: float, *, lasts: float = 1.0, data: bytes = b"media") -> bytes:
    """Return a fragment of track 1 from `time` on; both times are in seconds. It begins with a key frame."""
    header = box("tfhd", pack(">II", 0x020000, 1))
    decoded = box("tfdt", pack(">IQ", 0x01000000, round(time * SCALE)))
    place = 8 + 8 + len(header) + len(decoded) + 28 + 8  # behind the heads of moof and traf, the run, and that of mdat
    run = box("trun", pack(">IIIII", 0x000301, 1, place, round(lasts * SCALE), len(data)))
    return box("moof", box("traf", header, decoded, run)) + box("mdat", data)


def _track(number: int, codec: Codec) -> bytes:
    entry, kind, body = codec
    sound = entry in ("mp4a", "Opus", "ac-3", "ec-3", "fLaC")
    head = bytes(16) + pack(">HHHHI", 2, 16, 0, 0, 48_000 << 16) if sound else bytes(24) + pack(">HH", 640, 360) + bytes(50)
    described = box("stsd", pack(">II", 0, 1), box(entry, head, box(kind, body)))
    handler = box("hdlr", bytes(8), b"soun" if sound else b"vide", bytes(13))
    times = box("mdhd", pack(">6I", 0, 0, 0, SCALE, 0, 0x55C40000))
    return box("trak", box("tkhd", pack(">4I", 0, 0, 0, number)), box("mdia", times, handler, box("minf", box("stbl", described))))

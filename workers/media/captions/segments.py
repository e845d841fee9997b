"""Captions in the pictures of one segment of a stream: fragments of MP4, or packets of a transport stream.

A segment is examined alone, so no state is needed between segments. Captions that continue over a border are found by their next
command, which is in each line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final

from workers.media.boxes import boxes, needed, places
from workers.media.captions.a53 import MARK, NO_CAPTIONS, CaptionFinder, CaptionServices, Triple, caption_data
from workers.media.errors import Unreadable
from workers.media.fragments import Init, read_defaults, read_runs, read_time
from workers.media.transport_stream import PACKET

_CODECS: Final = {"avc1": "h264", "avc3": "h264", "hvc1": "hevc", "hev1": "hevc"}
_LENGTH_SIZE: Final = 4
_MOST_FRAGMENTS: Final = 10_000
_TIMED = tuple[int, Sequence[Triple]]


def segment_captions(file: Path, init: Init | None) -> CaptionServices:
    """Return the captions of a segment. `init` is None for a transport stream. An unreadable segment has none: the caller judges
    it. Fragments without captions are only searched for the mark of captions."""
    try:
        with file.open("rb") as opened, mmap(opened.fileno(), 0, access=ACCESS_READ) as data:
            if init is not None and data.find(MARK) < 0:
                return NO_CAPTIONS
            pictures = sorted(_of_fragments(data, init) if init is not None else _of_packets(data), key=lambda picture: picture[0])
    except (Unreadable, ValueError):
        return NO_CAPTIONS
    finder = CaptionFinder()
    for _, triples in pictures:
        finder.take(triples)
    return finder.services()


def _of_fragments(data: mmap, init: Init) -> Iterator[_TIMED]:
    """Yield the triples of each picture with the time at which it is shown."""
    main, codec = init.main, _CODECS.get(init.main.codec.partition(".")[0])
    size = (main.configuration[4] & 0x03) + 1 if codec == "h264" and len(main.configuration) > 4 else _LENGTH_SIZE
    if codec is None:
        return
    remaining = len(data)
    for moof in places(data, most=_MOST_FRAGMENTS):
        if moof.kind != b"moof":
            continue
        time, at = 0, moof.end
        for traf in boxes(memoryview(data[moof.begins : moof.end])):
            if traf.kind != b"traf":
                continue
            defaults = read_defaults(needed(traf.body, b"tfhd"), main.defaults)
            if defaults.number != main.number:
                continue
            time = read_time(needed(traf.body, b"tfdt"))
            for run in read_runs(traf.body):
                at = at if run.offset is None else moof.at + run.offset
                for lasts, length, _, shift in run.samples(defaults):
                    remaining -= length  # several runs may claim the same bytes
                    if at < 0 or remaining < 0:
                        return
                    yield time + shift, caption_data(data[at : at + length], codec, length_size=size)
                    time, at = time + lasts, at + length


def _of_packets(data: mmap) -> Iterator[_TIMED]:
    """Yield the triples of each picture of the first video track with its presentation time."""
    pid, unit = -1, bytearray()
    for at in range(0, len(data) - PACKET + 1, PACKET):
        packet = data[at : at + PACKET]
        own, begins = (packet[1] & 0x1F) << 8 | packet[2], bool(packet[1] & 0x40)
        if not packet[3] & 0x10:
            continue
        payload = packet[4 + (1 + packet[4] if packet[3] & 0x20 else 0) :]
        if pid < 0 and begins and payload[:3] == b"\0\0\1" and payload[3:4] and payload[3] & 0xF0 == 0xE0:
            pid = own
        if own != pid:
            continue
        if begins and unit:
            yield _of_unit(bytes(unit))
            unit.clear()
        unit += payload
    if unit:
        yield _of_unit(bytes(unit))


def _of_unit(unit: bytes) -> _TIMED:
    """Return the triples of a packet of an elementary stream with its header. Its codec is unknown before the first key frame."""
    time = 0
    if len(unit) >= 14 and unit[7] & 0x80:
        stamp = unit[9:14]
        time = (stamp[0] >> 1 & 7) << 30 | stamp[1] << 22 | (stamp[2] >> 1) << 15 | stamp[3] << 7 | stamp[4] >> 1
    by_codec = (caption_data(unit, codec, length_size=0) for codec in ("h264", "hevc", "mpeg2video"))
    return time, next((triples for triples in by_codec if triples), ())

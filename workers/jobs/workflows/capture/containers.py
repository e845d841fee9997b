"""The containers of segments, MPEG-TS and fragmented MP4: whether a file is a whole one, and the index of the latter.

An origin may send half a segment, or a page that says that there is none, with status 200.
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final, Literal

from workers.jobs.workflows.capture.segments import SourceFault
from workers.media.boxes import places
from workers.media.errors import Unreadable
from workers.media.fragments import read_index
from workers.media.resources import Part
from workers.media.transport_stream import PACKET, begins_packets, is_packets

Container = Literal["mpegts", "mp4"]

_MOST_BOXES: Final = 100_000
_FIRST_BOXES: Final = frozenset({b"styp", b"ftyp", b"moof", b"sidx", b"emsg", b"prft", b"moov", b"free"})


def container(path: Path) -> Container:
    """Of a segment. Raises `SourceFault` when it is none, or not a whole one."""
    if path.stat().st_size < PACKET:
        raise SourceFault("the segment is empty, or not a whole one")
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        if begins_packets(data) and data[4:8] not in _FIRST_BOXES:
            if not is_packets(data):
                raise SourceFault("the segment is not a whole number of MPEG-TS packets")
            return "mpegts"
        if data[4:8] not in _FIRST_BOXES:
            raise SourceFault("the segment is neither MPEG-TS nor fragmented MP4")
        if not {b"moof", b"mdat"} <= _kinds(data):
            raise SourceFault("the segment has no fragment of MP4")
        return "mp4"


def check_initialization(path: Path) -> None:
    """Raises `SourceFault` when the file is no initialization section."""
    data = path.read_bytes()
    if b"moov" not in _kinds(data):
        raise SourceFault("the initialization section is none of MP4")
    if b"encv" in data or b"enca" in data:
        raise SourceFault("The stream is encrypted; only a clear one is captured.", final=True)


def indexed(data: bytes, *, begins: int) -> Iterator[tuple[Part, float, float]]:
    """The subsegments that a `sidx` box lists: where they lie in the file, when they begin and how long they last. `begins` is
    where `data` lies in the file."""
    try:
        index = read_index(data, begins=begins)
    except Unreadable as fault:
        raise SourceFault(f"The file cannot be read: {fault}.", final=True) from None
    return ((Part(subsegment.first, subsegment.size), subsegment.time, subsegment.lasts) for subsegment in index)


def _kinds(data: bytes | mmap) -> set[bytes]:
    try:
        return {place.kind for place in places(data, most=_MOST_BOXES)}
    except Unreadable:
        raise SourceFault("the segment is not a whole number of MP4 boxes") from None

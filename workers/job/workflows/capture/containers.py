"""The containers of segments, MPEG-TS and fragmented MP4: a check that a file is complete, and the index of the latter.

An origin may send half a segment, or an error page with status 200.
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final, Literal

from workers.job.workflows.capture.segments import SourceFault
from workers.media.boxes import places
from workers.media.errors import Unreadable
from workers.media.fragments import read_index
from workers.media.resources import ResourceRange
from workers.media.transport_stream import PACKET, begins_packets, is_packets

Container = Literal["mpegts", "mp4"]

_MOST_BOXES: Final = 100_000
_FIRST_BOXES: Final = frozenset({b"styp", b"ftyp", b"moof", b"sidx", b"emsg", b"prft", b"moov", b"free"})


def container(path: Path) -> Container:
    """Return the container of a segment. Raises `SourceFault` if the file is not a segment, or not a complete one."""
    if path.stat().st_size < PACKET:
        raise SourceFault("the segment is empty or incomplete")
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
    """Raise `SourceFault` if the file is not an initialization section."""
    data = path.read_bytes()
    if b"moov" not in _kinds(data):
        raise SourceFault("the initialization section is not MP4")
    if b"encv" in data or b"enca" in data:
        raise SourceFault("The stream is encrypted; only a clear one is captured.", final=True)


def subsegments(data: bytes, *, begins: int) -> Iterator[tuple[ResourceRange, float, float]]:
    """Yield the subsegments that a `sidx` box lists: their places in the file, when they begin and how long they last.

    `begins` is the place of `data` in the file.
    """
    try:
        index = read_index(data, begins=begins)
    except Unreadable as fault:
        raise SourceFault(f"The file cannot be read: {fault}.", final=True) from None
    return ((ResourceRange(subsegment.first, subsegment.size), subsegment.time, subsegment.lasts) for subsegment in index)


def _kinds(data: bytes | mmap) -> set[bytes]:
    try:
        return {place.kind for place in places(data, most=_MOST_BOXES)}
    except Unreadable:
        raise SourceFault("the segment is not a whole number of MP4 boxes") from None

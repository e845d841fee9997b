"""The containers of segments, MPEG-TS and fragmented MP4: whether a file is a whole one, and the index of the latter.

An origin may send half a segment, or a page that says that there is none, with status 200. ISO/IEC 13818-1, 14496-12.
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from struct import error, unpack_from
from typing import Final, Literal

from workers.jobs.workflows.capture.segments import MOST_ENTRIES, Part, SourceFault

Container = Literal["mpegts", "mp4"]

_PACKET: Final = 188
_SYNC: Final = b"\x47"
_MOST_BOXES: Final = 100_000
_FIRST_BOXES: Final = frozenset({b"styp", b"ftyp", b"moof", b"sidx", b"emsg", b"prft", b"moov", b"free"})


def container(path: Path) -> Container:
    """Of a segment. Raises `SourceFault` when it is none, or not a whole one."""
    if path.stat().st_size < _PACKET:
        raise SourceFault("the segment is empty, or not a whole one")
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        if data[:1] == _SYNC and data[4:8] not in _FIRST_BOXES:
            syncs = data[::_PACKET]
            if len(data) % _PACKET or syncs != _SYNC * len(syncs):
                raise SourceFault("the segment is not a whole number of MPEG-TS packets")
            return "mpegts"
        if data[4:8] not in _FIRST_BOXES:
            raise SourceFault("the segment is neither MPEG-TS nor fragmented MP4")
        if not {b"moof", b"mdat"} <= {kind for kind, _, _ in _boxes(data)}:
            raise SourceFault("the segment has no fragment of MP4")
        return "mp4"


def check_initialization(path: Path) -> None:
    """Raises `SourceFault` when the file is no initialization section."""
    data = path.read_bytes()
    if b"moov" not in {kind for kind, _, _ in _boxes(data)}:
        raise SourceFault("the initialization section is none of MP4")
    if b"encv" in data or b"enca" in data:
        raise SourceFault("The stream is encrypted; only a clear one is captured.", final=True)


def indexed(data: bytes, *, begins: int) -> Iterator[tuple[Part, float, float]]:
    """The subsegments that a `sidx` box lists: where they lie in the file, when they begin and how long they last. `begins` is
    where `data` lies in the file."""
    for kind, at, size in _boxes(data):
        if kind == b"sidx":
            yield from _subsegments(data[at : at + size], after=begins + at + size)
            return
    raise SourceFault("The file has no index of its segments (sidx).", final=True)


def _subsegments(box: bytes, *, after: int) -> Iterator[tuple[Part, float, float]]:
    try:
        version, scale = box[8], unpack_from(">I", box, 16)[0]
        time, gap = unpack_from(">II" if version == 0 else ">QQ", box, 20)
        at = 28 if version == 0 else 36
        count = unpack_from(">H", box, at + 2)[0]
        if not scale or count > MOST_ENTRIES:
            raise SourceFault("The index of the file (sidx) cannot be read.", final=True)
        first = after + gap
        for entry in range(count):
            size, lasts = unpack_from(">II", box, at + 4 + 12 * entry)
            if size >> 31:
                raise SourceFault("The index of the file refers to other indexes, which is not supported.", final=True)
            yield Part(first, size), time / scale, lasts / scale
            first, time = first + size, time + lasts
    except (error, IndexError):
        raise SourceFault("The index of the file (sidx) cannot be read.", final=True) from None


def _boxes(data: bytes | mmap) -> Iterator[tuple[bytes, int, int]]:
    """Type, place and size of the boxes on the top level, which fill the file."""
    at, count = 0, 0
    while at < len(data):
        head = data[at : at + 16]
        size = int.from_bytes(head[:4]) if len(head) >= 8 else 0
        size = int.from_bytes(head[8:16]) if size == 1 and len(head) == 16 else size
        count += 1
        if size < 8 or at + size > len(data) or count > _MOST_BOXES:
            raise SourceFault("the segment is not a whole number of MP4 boxes")
        yield head[4:8], at, size
        at += size

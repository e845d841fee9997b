"""Packets of a track that ffmpeg copies unchanged: one file with their bytes, and one that lists their times and sizes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, TextIO

from workers.media.captions.samples import Sample
from workers.media.packet_list import listed_packets

_MOST: Final = 12 * 3600 * 60
_LARGEST: Final = 1_048_576


def copied_packets(name: str, *selected: str) -> tuple[str, ...]:
    """Return the options of two outputs. `selected` are the options that select a track and the filters for its packets."""
    copied = (*selected, "-c", "copy", "-copy_unknown")
    return (*copied, "-f", "data", f"{name}.bytes", *copied, "-f", "framecrc", f"{name}.times")


def packets(place: Path) -> Iterator[Sample]:
    """Yield the packets in the order in which they are decoded. A packet is cut after 1,048,576 bytes.

    `place` is the path of the two files without their suffixes.
    """
    data, times = place.with_suffix(".bytes"), place.with_suffix(".times")
    if not (data.is_file() and times.is_file()):
        return
    with data.open("rb") as content, times.open() as lines:
        yield from islice(_read_packets(content, lines), _MOST)


def discard_packets(place: Path) -> None:
    for suffix in (".bytes", ".times"):
        place.with_suffix(suffix).unlink(missing_ok=True)


def _read_packets(content: BinaryIO, lines: TextIO) -> Iterator[Sample]:
    for packet in listed_packets(lines):
        yield Sample(max(packet.at, 0.0), packet.lasts, content.read(min(packet.size, _LARGEST)))
        content.seek(max(packet.size - _LARGEST, 0), 1)

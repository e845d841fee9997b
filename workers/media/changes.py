"""Detects if the parameters of tracks change in the middle, while ffmpeg copies them.

An MP4 file describes a track once. A track that is described differently further on would be lost, or shown wrongly, so it is
encoded again. Nothing is decoded for this: pictures have parameter sets, and each frame of sound has a header.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from workers.media.packet_list import listed_packets

_PARAMETER_SETS: Final = {
    "h264": "h264_mp4toannexb,filter_units=pass_types=7",
    "hevc": "hevc_mp4toannexb,filter_units=pass_types=32-34",
}
"""Filters that pass only the parameter sets of packets. An MP4 file of H.264 may hold further picture parameters in its samples."""
_HEADER: Final = 8


@dataclass(frozen=True)
class Watch:
    """Watches a track of pictures or sound by its codec, with files of the folder. `headed` is True if each frame of AAC has a
    header."""

    stream: int
    codec: str
    folder: Path
    headed: bool

    def options(self) -> tuple[str, ...]:
        """Return further outputs of the command that copies the track."""
        mapped = ("-map", f"0:{self.stream}", "-c", "copy")
        if self.codec in _PARAMETER_SETS:
            return (*mapped, "-bsf:v", _PARAMETER_SETS[self.codec], "-f", "framecrc", self._list.name)
        if self._has_headers:
            return (*mapped, "-f", "framecrc", self._list.name, *mapped, "-f", "data", self._data.name)
        return ()

    def changed(self) -> bool:
        """Return True if the parameters changed, and delete the files."""
        if not self.options():
            return False
        seen = {key for key in (self._heads() if self._has_headers else self._sets()) if key}
        self._list.unlink()
        self._data.unlink(missing_ok=True)
        return len(seen) > 1

    @property
    def _has_headers(self) -> bool:
        return self.codec in ("ac3", "eac3", "mp3") or (self.codec == "aac" and self.headed)

    @property
    def _list(self) -> Path:
        return self.folder / f"parameters-{self.stream}.txt"

    @property
    def _data(self) -> Path:
        return self.folder / f"parameters-{self.stream}.data"

    def _sets(self) -> Iterator[tuple[int, str]]:
        with self._list.open() as lines:
            for packet in listed_packets(lines):
                yield packet.size, packet.digest

    def _heads(self) -> Iterator[tuple[int, ...]]:
        with self._data.open("rb") as data, self._list.open() as lines:
            for packet in listed_packets(lines):
                head = data.read(min(packet.size, _HEADER))
                data.seek(packet.size - len(head), 1)
                yield parameters(self.codec, head)


def parameters(codec: str, head: bytes) -> tuple[int, ...]:
    """Return the rate and the channels in the header of a frame of sound; an empty tuple if it is not such a header."""
    if len(head) < _HEADER:
        return ()
    if codec in ("ac3", "eac3"):
        if head[:2] != b"\x0b\x77":
            return ()
        if head[5] >> 3 > 10:  # ETSI TS 102 366, E.1.2: dependent streams add channels
            return (2, head[4] >> 6, head[4] & 0x0F) if head[2] >> 6 != 1 else ()
        return (1, head[4] >> 6, *_channels_of_ac3(head))
    if codec == "aac":  # ISO/IEC 13818-7, 6.2: profile, sample rate, channels
        return (head[2] >> 2, (head[2] & 1) << 2 | head[3] >> 6) if head[0] == 0xFF and head[1] & 0xF6 == 0xF0 else ()
    # ISO/IEC 11172-3, 2.4.2.3: version and layer, sample rate, whether there is one channel
    return (head[1] >> 1 & 0x0F, head[2] >> 2 & 3, head[3] >> 6 == 3) if head[0] == 0xFF and head[1] & 0xE0 == 0xE0 else ()


def _channels_of_ac3(head: bytes) -> tuple[int, int]:
    """Return the coding mode, and whether there is a low-frequency channel: ETSI TS 102 366, 4.4.2. The bits between them depend on
    the mode."""
    mode = head[6] >> 5
    before = 2 * (mode & 1 and mode != 1) + 2 * bool(mode & 4) + 2 * (mode == 2)
    return mode, (head[6] << 8 | head[7]) >> (12 - before) & 1

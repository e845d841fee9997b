"""A track of CMAF, as ffmpeg writes it to a pipe and origins deliver it: its header, and fragments with all their samples.

It is parsed here, so that all publishing points get the same bytes with the same borders, and no program needs their addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from workers.media.boxes import boxes, head, needed
from workers.media.errors import Unreadable
from workers.media.fragments import NOT_SYNC, NOTHING, Defaults, read_defaults, read_init, read_runs, read_time

LARGEST: Final = 64 * 1024 * 1024
"""The largest size of a box in bytes: ten seconds of 50 Mbit/s. The encoder here writes half a second."""
_LARGEST_MOOF: Final = 4 * 1024 * 1024
_LARGEST_SAMPLE: Final = 8 * 1024 * 1024
"""The largest size of a frame in bytes. FLV cannot store 16 MiB."""
_OVERHEAD: Final = 200
"""Bytes of memory for each sample, in addition to its media."""
_CODECS: Final = ("avc1.", "mp4a.")


@dataclass(frozen=True, slots=True)
class CmafSample:
    """A sample. `duration`, and `shift` of the time at which it is shown, are in ticks."""

    size: int
    duration: int
    shift: int
    key: bool


@dataclass(frozen=True, slots=True)
class CmafFragment:
    """A fragment. `time` and `duration` are in ticks, `data` holds moof and mdat."""

    time: int
    duration: int
    data: bytes = field(repr=False)
    samples: Sequence[CmafSample] = field(repr=False)
    media: int = 0
    """The offset in `data` at which the first sample begins."""

    @property
    def key(self) -> bool:
        return bool(self.samples) and self.samples[0].key

    @property
    def weight(self) -> int:
        """The size in memory, in bytes."""
        return len(self.data) + _OVERHEAD * len(self.samples)


@dataclass(frozen=True, slots=True)
class CmafHeader:
    """The header of a track. `codec` is as in RFC 6381, `configuration` is that of the decoder."""

    data: bytes = field(repr=False)
    timescale: int
    codec: str
    configuration: bytes = field(repr=False)
    width: int = 0
    height: int = 0
    defaults: Defaults = field(default=NOTHING, repr=False)


def header(data: bytes) -> CmafHeader:
    """Parse ftyp and moov, which have one track of H.264 or AAC. Raise `Unreadable`."""
    track, *others = read_init(data).media
    if others or not track.codec.startswith(_CODECS) or not track.configuration:
        raise Unreadable("its header is not that of one track of H.264 or AAC")
    return CmafHeader(data, track.timescale, track.codec, track.configuration, track.width, track.height, track.defaults)


def fragment(moof: bytes, mdat: bytes, *, shift: int = 0, defaults: Defaults = NOTHING) -> CmafFragment:
    """Parse a fragment. `shift`, in ticks, is added to its time; `defaults` are those of the header. The work is bounded by the
    number of bytes, not by what they claim. Raise `Unreadable`."""
    if len(moof) > _LARGEST_MOOF:
        raise Unreadable("the description of a fragment is too large")
    data = bytearray(moof)
    body = memoryview(data)[head(moof)[2] :]
    traf, *others = [box.body for box in boxes(body) if box.kind == b"traf"] or [needed(body, b"traf")]
    if others:
        raise Unreadable("a fragment has more than one track")
    usual = read_defaults(needed(traf, b"tfhd"), defaults)
    time = _shift_time(needed(traf, b"tfdt"), shift)
    samples, begins = _samples(traf, usual, most=len(mdat))
    if begins < 0 or begins + sum(sample.size for sample in samples) > len(moof) + len(mdat):
        raise Unreadable("a fragment has less media than it claims")
    return CmafFragment(time, sum(sample.duration for sample in samples), bytes(data) + mdat, samples, begins)


def _shift_time(tfdt: memoryview, shift: int) -> int:
    """Return the shifted time, which is also written back."""
    time = read_time(tfdt) + shift
    if shift:
        if tfdt[0] != 1 or not 0 <= time < 2**64:
            raise Unreadable("a time of a fragment cannot be changed")
        tfdt[4:12] = time.to_bytes(8, "big")
    return time


def _samples(traf: memoryview, defaults: Defaults, *, most: int) -> tuple[list[CmafSample], int]:
    """Return the samples, and the offset of the first one in the fragment. Each sample follows the previous one."""
    samples: list[CmafSample] = []
    begins = end = None
    for run in read_runs(traf):
        if len(samples) + run.count > most:
            raise Unreadable("a fragment has less media than it claims")
        begins = run.offset or 0 if begins is None else begins
        if end is not None and run.offset not in (None, end):
            raise Unreadable("the samples of a fragment do not follow each other")
        for duration, size, flags, later in run.samples(defaults):
            if size > _LARGEST_SAMPLE:
                raise Unreadable("a sample is too large")
            samples.append(CmafSample(size, duration, later, not flags & NOT_SYNC))
        end = begins + sum(sample.size for sample in samples)
    return samples, begins or 0

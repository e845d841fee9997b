"""One track of CMAF, as ffmpeg writes it to a pipe and origins give it out: its header, and fragments with all their samples.

Read here, so that all publishing points get the same bytes with the same borders, and no program needs an address of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from workers.media.boxes import boxes, head, needed
from workers.media.errors import Unreadable
from workers.media.fragments import NOT_SYNC, NOTHING, Defaults, read_defaults, read_init, read_runs, read_time

LARGEST: Final = 64 * 1024 * 1024
"""Bytes of one box: ten seconds of 50 Mbit/s. An encoder here writes half a second."""
_LARGEST_MOOF: Final = 4 * 1024 * 1024
_LARGEST_SAMPLE: Final = 8 * 1024 * 1024
"""Bytes of one frame. FLV has no place for 16 MiB."""
_OVERHEAD: Final = 200
"""Bytes of memory for each sample, beside its media."""
_CODECS: Final = ("avc1.", "mp4a.")


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
    """The place in `data` at which the first sample begins."""

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
    defaults: Defaults = field(default=NOTHING, repr=False)


def header(data: bytes) -> Header:
    """Read ftyp and moov, which have one track of H.264 or AAC. Raises `Unreadable`."""
    track, *others = read_init(data).media
    if others or not track.codec.startswith(_CODECS) or not track.configuration:
        raise Unreadable("its header is not that of one track of H.264 or AAC")
    return Header(data, track.timescale, track.codec, track.configuration, track.width, track.height, track.defaults)


def fragment(moof: bytes, mdat: bytes, *, shift: int = 0, defaults: Defaults = NOTHING) -> Fragment:
    """`shift`, in ticks, is added to its time; `defaults` are those of the header. What it costs is bounded by the bytes that are
    there, not by what they claim. Raises `Unreadable`."""
    if len(moof) > _LARGEST_MOOF:
        raise Unreadable("the description of a fragment is too large")
    data = bytearray(moof)
    body = memoryview(data)[head(moof)[2] :]
    traf, *others = [one.body for one in boxes(body) if one.kind == b"traf"] or [needed(body, b"traf")]
    if others:
        raise Unreadable("a fragment has more than one track")
    usual = read_defaults(needed(traf, b"tfhd"), defaults)
    time = _moved(needed(traf, b"tfdt"), shift)
    samples, begins = _samples(traf, usual, most=len(mdat))
    if begins < 0 or begins + sum(one.size for one in samples) > len(moof) + len(mdat):
        raise Unreadable("a fragment has less media than it claims")
    return Fragment(time, sum(one.duration for one in samples), bytes(data) + mdat, samples, begins)


def _moved(tfdt: memoryview, shift: int) -> int:
    """The time, which is written back."""
    time = read_time(tfdt) + shift
    if shift:
        if tfdt[0] != 1 or not 0 <= time < 2**64:
            raise Unreadable("a time of a fragment cannot be changed")
        tfdt[4:12] = time.to_bytes(8, "big")
    return time


def _samples(traf: memoryview, defaults: Defaults, *, most: int) -> tuple[list[Sample], int]:
    """And where in the fragment the first of them begins. Each is behind the one before."""
    samples: list[Sample] = []
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
            samples.append(Sample(size, duration, later, not flags & NOT_SYNC))
        end = begins + sum(one.size for one in samples)
    return samples, begins or 0

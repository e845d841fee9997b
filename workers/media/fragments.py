"""Fragmented MP4: what an initialization section and the fragments after it say. ISO/IEC 14496-12, 8.8; CMAF, ISO/IEC 23000-19."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from workers.media.boxes import Fields, boxes, child, needed
from workers.media.codecs import codec_name
from workers.media.errors import Unreadable

_NOT_SYNC: Final = 0x10000
MOST_SAMPLES: Final = 100_000
"""Of one `trun`."""
MOST_TRACKS: Final = 8
_LONGEST: Final = 600.0
PER_SAMPLE: Final = (0x100, 0x200, 0x400, 0x800)
"""Of a `trun`: each sample has a duration, a size, flags, an offset, of four bytes each, in this order."""


@dataclass(frozen=True, slots=True)
class Media:
    """A track of an initialization section. `kind` is video or audio."""

    number: int
    kind: str
    timescale: int
    codec: str
    width: int = 0
    height: int = 0
    channels: int = 0
    rate: int = 0
    language: str = ""
    sample_duration: int = 0
    sample_flags: int = 0


@dataclass(frozen=True, slots=True)
class Init:
    """An initialization section. Of several tracks the first video, else the first, is the one that segments are counted by."""

    media: tuple[Media, ...]

    @property
    def main(self) -> Media:
        return next((one for one in self.media if one.kind == "video"), self.media[0])

    @property
    def codecs(self) -> str:
        return ",".join(one.codec for one in self.media)

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(one.kind for one in self.media)


@dataclass(frozen=True, slots=True)
class Fragment:
    """The times of the main track's samples, in its timescale. `sync`: it can be decoded from its first sample on."""

    time: int
    lasts: int
    sync: bool


def read_init(data: bytes) -> Init:
    """Of a file that begins with `ftyp` and `moov`. Raises `Unreadable`."""
    moov = needed(memoryview(data), b"moov")
    defaults = dict(_trex(one.body) for one in boxes(child(moov, b"mvex") or memoryview(b"")) if one.kind == b"trex")
    if not defaults:
        raise Unreadable("it is not fragmented (no mvex)")
    media = [
        _media(one.body, number=_track_number(needed(one.body, b"tkhd")), defaults=defaults)
        for one in boxes(moov)
        if one.kind == b"trak"
    ]
    if not 1 <= len(media) <= MOST_TRACKS:
        raise Unreadable("it has no track, or too many")
    return Init(tuple(media))


def _track_number(tkhd: memoryview) -> int:
    fields = Fields(tkhd)
    version = fields.whole(1)
    fields.skip(3 + (16 if version else 8))
    return fields.whole(4)


def _media(trak: memoryview, *, number: int, defaults: dict[int, tuple[int, int]]) -> Media:
    handler = Fields(needed(trak, b"mdia", b"hdlr"))
    handler.skip(8)
    kind = {b"vide": "video", b"soun": "audio"}.get(handler.whole(4).to_bytes(4, "big"))
    if kind is None:
        raise Unreadable("a track is neither video nor audio")
    timescale, language = _timing(needed(trak, b"mdia", b"mdhd"))
    description = Fields(needed(trak, b"mdia", b"minf", b"stbl", b"stsd"))
    description.skip(8)
    entry = next(boxes(description.rest()), None)
    if entry is None:
        raise Unreadable("a track has no description")
    fields = Fields(entry.body)
    width = height = channels = rate = 0
    if kind == "video":
        fields.skip(24)
        width, height = fields.whole(2), fields.whole(2)
    else:
        fields.skip(16)
        channels = fields.whole(2)
        fields.skip(6)
        rate = fields.whole(2)
    duration, flags = defaults.get(number, (0, 0))
    return Media(
        number, kind, timescale, codec_name(entry.kind, entry.body), width, height, channels, rate, language, duration, flags
    )


def _timing(mdhd: memoryview) -> tuple[int, str]:
    fields = Fields(mdhd)
    version = fields.whole(1)
    fields.skip(3 + (16 if version else 8))
    timescale = fields.whole(4)
    fields.skip(8 if version else 4)
    packed = fields.whole(2)
    if not timescale:
        raise Unreadable("a track has no timescale")
    letters = "".join(chr((packed >> shift & 0x1F) + 0x60) for shift in (10, 5, 0))
    return timescale, letters if letters.isascii() and letters.isalpha() and letters != "und" else ""


def _trex(body: memoryview) -> tuple[int, tuple[int, int]]:
    fields = Fields(body)
    fields.skip(4)
    number = fields.whole(4)
    fields.skip(4)
    duration = fields.whole(4)
    fields.skip(4)
    return number, (duration, fields.whole(4))


def read_fragment(moof: memoryview, init: Init) -> Fragment:
    """Of the body of a `moof`."""
    main = init.main
    for one in boxes(moof):
        if one.kind == b"traf":
            number, duration, flags = _tfhd(needed(one.body, b"tfhd"), main)
            if number == main.number:
                return _fragment(one.body, main, duration, flags)
    raise Unreadable("a fragment has nothing of the main track")


def _tfhd(body: memoryview, main: Media) -> tuple[int, int, int]:
    fields = Fields(body)
    present = fields.whole(4)
    number = fields.whole(4)
    fields.skip((8 if present & 0x01 else 0) + (4 if present & 0x02 else 0))
    duration = fields.whole(4) if present & 0x08 else main.sample_duration
    fields.skip(4 if present & 0x10 else 0)
    return number, duration, fields.whole(4) if present & 0x20 else main.sample_flags


def _fragment(traf: memoryview, main: Media, duration: int, flags: int) -> Fragment:
    time, lasts, sync = _tfdt(needed(traf, b"tfdt")), 0, None
    for one in boxes(traf):
        if one.kind == b"trun":
            added, first = _trun(one.body, duration, flags)
            lasts += added
            sync = first if sync is None else sync
    if sync is None or lasts <= 0 or lasts / main.timescale > _LONGEST:
        raise Unreadable("a fragment has no samples, or lasts too long")
    return Fragment(time, lasts, sync or main.kind == "audio")


def _tfdt(body: memoryview) -> int:
    fields = Fields(body)
    version = fields.whole(1)
    fields.skip(3)
    return fields.whole(8 if version else 4)


def _trun(body: memoryview, duration: int, flags: int) -> tuple[int, bool]:
    """How long it lasts, and whether its first sample is a sync sample. What it costs is bounded by the bytes that
    are there, not by the samples that are claimed."""
    fields = Fields(body)
    present = fields.whole(4)
    count = fields.whole(4)
    if not 0 < count <= MOST_SAMPLES:
        raise Unreadable("a fragment has no samples, or too many")
    fields.skip(4 if present & 0x01 else 0)
    first = fields.whole(4) if present & 0x04 else None
    told = [bool(present & flag) for flag in PER_SAMPLE]
    rest, step = fields.rest(), 4 * sum(told)
    if len(rest) < count * step:
        raise Unreadable("a box is too short")
    if first is None:
        first = int.from_bytes(rest[4 * sum(told[:2]) :][:4], "big") if told[2] else flags
    durations = (int.from_bytes(rest[at : at + 4], "big") for at in range(0, count * step, step)) if told[0] else ()
    return sum(durations) if told[0] else count * duration, not first & _NOT_SYNC


def read_fragments(data: Sequence[memoryview], init: Init) -> Fragment:
    """What several fragments are together."""
    found = [read_fragment(one, init) for one in data]
    if not found:
        raise Unreadable("it has no fragment")
    return Fragment(found[0].time, sum(one.lasts for one in found), found[0].sync)

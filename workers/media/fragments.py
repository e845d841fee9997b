"""Fragmented MP4: the data of an initialization section and of the fragments after it. ISO/IEC 14496-12, 8.8; CMAF, ISO/IEC
23000-19."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from mmap import ACCESS_READ, mmap
from pathlib import Path
from struct import iter_unpack
from typing import Final, NamedTuple

from workers.media.boxes import Fields, boxes, child, needed, places
from workers.media.codecs import codec_name, decoder_configuration
from workers.media.errors import Unreadable

NOT_SYNC: Final = 0x10000
"""The flag of a sample that needs others to be decoded."""
MOST_SAMPLES: Final = 100_000
"""The largest number of samples of one `trun`."""
MOST_TRACKS: Final = 8
_MOST_IN_FILE: Final = 100_000
"""The largest number of boxes on the top level of a file."""
_LONGEST: Final = 600.0
_PER_SAMPLE: Final = (0x100, 0x200, 0x400, 0x800)
"""The flags of a `trun` that mean that each sample has a duration, a size, flags or an offset: four bytes each, in this order."""


class Defaults(NamedTuple):
    """The values of samples that have none of their own. `number` is that of the track."""

    number: int = 0
    duration: int = 0
    size: int = 0
    flags: int = 0


NOTHING: Final = Defaults()


@dataclass(frozen=True, slots=True)
class Media:
    """A track of an initialization section. `kind` is video or audio; `configuration` is that of a decoder of H.264 or AAC."""

    number: int
    kind: str
    timescale: int
    codec: str
    width: int = 0
    height: int = 0
    channels: int = 0
    rate: int = 0
    language: str = ""
    defaults: Defaults = NOTHING
    configuration: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Init:
    """An initialization section. Of several tracks, the first video, or else the first track, is the one that segments are counted
    by."""

    media: tuple[Media, ...]

    @property
    def main(self) -> Media:
        return next((track for track in self.media if track.kind == "video"), self.media[0])

    @property
    def codecs(self) -> str:
        return ",".join(media.codec for media in self.media)

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(media.kind for media in self.media)


@dataclass(frozen=True, slots=True)
class Fragment:
    """The times of the main track's samples, in its timescale. `sync` is True if it can be decoded from its first sample on."""

    time: int
    lasts: int
    sync: bool


def read_init(data: bytes) -> Init:
    """Parse the header of a file that begins with `ftyp` and `moov`. Raise `Unreadable`."""
    moov = needed(memoryview(data), b"moov")
    values = [_trex(box.body) for box in boxes(child(moov, b"mvex") or memoryview(b"")) if box.kind == b"trex"]
    defaults = {value.number: value for value in values}
    if not defaults:
        raise Unreadable("it is not fragmented (no mvex)")
    media = [
        _media(box.body, number=_track_number(needed(box.body, b"tkhd")), defaults=defaults)
        for box in boxes(moov)
        if box.kind == b"trak"
    ]
    if not 1 <= len(media) <= MOST_TRACKS:
        raise Unreadable("it has no track, or too many")
    return Init(tuple(media))


def _track_number(tkhd: memoryview) -> int:
    fields = Fields(tkhd)
    version = fields.whole(1)
    fields.skip(3 + (16 if version else 8))
    return fields.whole(4)


def _media(trak: memoryview, *, number: int, defaults: dict[int, Defaults]) -> Media:
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
    name, configuration = codec_name(entry.kind, entry.body), decoder_configuration(entry.kind, entry.body)
    usual = defaults.get(number, Defaults(number))
    return Media(number, kind, timescale, name, width, height, channels, rate, language, usual, configuration)


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


def _trex(body: memoryview) -> Defaults:
    fields = Fields(body)
    fields.skip(4)
    number = fields.whole(4)
    fields.skip(4)
    return Defaults(number, fields.whole(4), fields.whole(4), fields.whole(4))


def read_fragment(moof: memoryview, init: Init) -> Fragment:
    """Parse the body of a `moof`. Raise `Unreadable`."""
    main = init.main
    for box in boxes(moof):
        if box.kind == b"traf":
            defaults = read_defaults(needed(box.body, b"tfhd"), main.defaults)
            if defaults.number == main.number:
                return _fragment(box.body, main, defaults)
    raise Unreadable("a fragment has nothing of the main track")


def read_defaults(tfhd: memoryview, usual: Defaults) -> Defaults:
    """Return the defaults of a fragment. `usual` are those of the track."""
    fields = Fields(tfhd)
    present = fields.whole(4)
    number = fields.whole(4)
    fields.skip((8 if present & 0x01 else 0) + (4 if present & 0x02 else 0))
    duration = fields.whole(4) if present & 0x08 else usual.duration
    size = fields.whole(4) if present & 0x10 else usual.size
    return Defaults(number, duration, size, fields.whole(4) if present & 0x20 else usual.flags)


def _fragment(traf: memoryview, main: Media, defaults: Defaults) -> Fragment:
    runs = read_runs(traf)
    lasts = sum(run.lasts(defaults) for run in runs)
    if lasts <= 0 or lasts / main.timescale > _LONGEST:
        raise Unreadable("a fragment has no samples, or lasts too long")
    sync = main.kind == "audio" or not runs[0].first_flags(defaults) & NOT_SYNC
    return Fragment(read_time(needed(traf, b"tfdt")), lasts, sync)


def read_time(tfdt: memoryview) -> int:
    """Return the time at which the fragment is decoded, in ticks."""
    fields = Fields(tfdt)
    version = fields.whole(1)
    fields.skip(3)
    return fields.whole(8 if version else 4)


class SampleRun:
    """The samples of a `trun`. The work is bounded by the number of bytes, not by the samples that are claimed. `offset` is that of
    the first sample from the start of the `moof`; None if it begins at the end of the previous run."""

    def __init__(self, body: memoryview) -> None:
        fields = Fields(body)
        present = fields.whole(4)
        self.count = fields.whole(4)
        if not 0 < self.count <= MOST_SAMPLES:
            raise Unreadable("a fragment has no samples, or too many")
        self.offset = fields.whole(4, signed=True) if present & 0x01 else None
        self._first = fields.whole(4) if present & 0x04 else None
        self._given = [bool(present & flag) for flag in _PER_SAMPLE]
        self._table = fields.take(self.count * 4 * sum(self._given))

    def lasts(self, defaults: Defaults) -> int:
        """Return the duration of the run in ticks."""
        if not self._given[0]:
            return self.count * defaults.duration
        words = sum(self._given)
        return sum(value[0] for value in iter_unpack(f">I{4 * (words - 1)}x", self._table))

    def first_flags(self, defaults: Defaults) -> int:
        if self._first is not None:
            return self._first
        place = 4 * sum(self._given[:2])
        return int.from_bytes(self._table[place : place + 4], "big") if self._given[2] else defaults.flags

    def samples(self, defaults: Defaults) -> Iterator[tuple[int, int, int, int]]:
        """Yield the duration, the size, the flags and the shift of each sample, from the time at which it is decoded to the time at
        which it is shown."""
        usual = (defaults.duration, defaults.size, defaults.flags, 0)
        codes = "".join("i" if number == 3 else "I" for number, given in enumerate(self._given) if given)
        table = iter_unpack(f">{codes}", self._table) if codes else repeat((), self.count)
        picked = [sum(self._given[:number]) if given else None for number, given in enumerate(self._given)]
        for number, values in enumerate(table):
            duration, size, flags, shift = (
                other if place is None else values[place] for place, other in zip(picked, usual, strict=True)
            )
            yield duration, size, self._first if number == 0 and self._first is not None else flags, shift


def read_runs(traf: memoryview) -> list[SampleRun]:
    """Parse all runs of a track. Raise `Unreadable` if there is none."""
    runs = [SampleRun(box.body) for box in boxes(traf) if box.kind == b"trun"]
    if not runs:
        raise Unreadable("a fragment has no samples, or lasts too long")
    return runs


def read_fragments(data: Sequence[memoryview], init: Init) -> Fragment:
    """Parse several fragments as a single fragment."""
    fragments = [read_fragment(moof, init) for moof in data]
    if not fragments:
        raise Unreadable("it has no fragment")
    return Fragment(fragments[0].time, sum(fragment.lasts for fragment in fragments), fragments[0].sync)


def read_moofs(file: Path, *, most: int) -> list[memoryview]:
    """Return the bodies of the `moof` boxes of a segment, each of at most `most` bytes. Media data is skipped. Raise
    `Unreadable`."""
    if not file.stat().st_size:
        return []
    with file.open("rb") as opened, mmap(opened.fileno(), 0, access=ACCESS_READ) as data:
        moofs = [place for place in places(data, most=_MOST_IN_FILE) if place.kind == b"moof"]
        if any(place.end - place.at > most for place in moofs):
            raise Unreadable("a box is too large")
        return [memoryview(data[place.begins : place.end]) for place in moofs]


class Subsegment(NamedTuple):
    """A part of a file. `first` and `size` are bytes, `time` and `lasts` seconds."""

    first: int
    size: int
    time: float
    lasts: float


def read_index(data: bytes, *, begins: int) -> list[Subsegment]:
    """Return the subsegments of the first `sidx` box. `begins` is the offset of `data` in its file. Raise `Unreadable`."""
    place = next((box for box in places(data, most=_MOST_IN_FILE) if box.kind == b"sidx"), None)
    if place is None:
        raise Unreadable("it has no index of its segments (sidx)")
    fields = Fields(memoryview(data)[place.begins : place.end])
    width = 8 if fields.whole(1) else 4
    fields.skip(7)
    scale = fields.whole(4)
    time, first = fields.whole(width), fields.whole(width)
    fields.skip(2)
    count = fields.whole(2)
    if not scale:
        raise Unreadable("its index of segments has no timescale")
    first += begins + place.end
    subsegments = []
    for size, lasts, _ in iter_unpack(">III", fields.take(12 * count)):
        if size >> 31:
            raise Unreadable("its index refers to other indexes")
        subsegments.append(Subsegment(first, size, time / scale, lasts / scale))
        first, time = first + size, time + lasts
    return subsegments

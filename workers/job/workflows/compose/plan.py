"""The plan of a film: each item is copied or encoded again, with its number of frames and samples, and the places of breaks.

This module is pure. Frames of the film are on one grid, that of its rate: an item begins on a frame, and what rounding adds to one
item is taken from the next, so that nothing drifts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Final

from pydantic import TypeAdapter

from workers.job.context import StepFailed
from workers.job.workflows.vod.breaks import Break
from workers.media.colours import BT709, Colours
from workers.media.filters import KEY_SECONDS

SAMPLES: Final = 48_000
"""Samples in a second of sound that is encoded."""
LARGEST_STEP: Final = 3.0
"""The largest difference, in LU, between two items whose sound is copied."""
LONGEST: Final = 24 * 3600
_LARGEST_SIDE: Final = 4096
_FASTEST: Final = 120
_RATES: Final = (
    *(Fraction(24_000, 1001), Fraction(24), Fraction(25), Fraction(30_000, 1001)),
    *(Fraction(30), Fraction(50), Fraction(60_000, 1001), Fraction(60)),
)
_MIXED: Final = "h264"
"""The only codec that can be mixed with pictures that are encoded again."""
_COPIED: Final = frozenset({"h264", "hevc"})
_SLOWER: Final = 20
"""The factor by which an encoded frame takes longer than a copied one."""
_NEAR: Final = 0.001


Form = tuple[int, int, tuple[int, int], tuple[str, str, str]]
"""Width, height, rate and colours, which all pictures of a film share."""


@dataclass(frozen=True, slots=True)
class SourcePicture:
    """The picture of a source.

    `headers` is a digest of those of its codec, `reorder` the number of frames that are decoded before their turn. `steady` means a
    constant rate, in a container whose key frames are found by their times. `plain` means progressive, upright, with square pixels
    of 8 bits in standard dynamic range. `bare` means that its container has no instructions to turn or stretch it, which a copy
    would lose. `colours` are the matrix, the primaries and the transfer of a film that is made of it.
    """

    codec: str
    width: int
    height: int
    rate: tuple[int, int]
    headers: str
    steady: bool
    plain: bool
    reorder: int
    bare: bool = True
    colours: tuple[str, str, str] = (BT709, BT709, BT709)

    @property
    def form(self) -> Form:
        return self.width, self.height, self.rate, self.colours


@dataclass(frozen=True, slots=True)
class SourceSound:
    """A sound track of a source.

    `simple` means AAC whose frames are independent, so that it can be cut between them. `begins` is its first second in the source.
    """

    index: int
    channels: int
    rate: int
    language: str
    simple: bool
    begins: float


@dataclass(frozen=True, slots=True)
class FilmPart:
    """An item as it would be cut, in seconds of its source.

    If it is encoded again, it lasts from `at` until `after`, both exact to the frame; if it is copied, from the key frame at
    `begin` until `end`. `version` is that of the source's file. `exact` means that it must not be copied. `stands` is how long, at
    its end, there is only sound and the last picture stands still. `stood` is how long its first picture was shown before it.
    """

    source: str
    version: str
    shown: SourcePicture
    sounds: tuple[SourceSound, ...]
    at: float
    after: float
    begin: float
    end: float
    begins_at_key: bool
    exact: bool
    stands: float = 0.0
    stood: float = 0.0


@dataclass(frozen=True, slots=True)
class FilmTracks:
    """The sound tracks of the film: their channels, their languages, and their sample rate."""

    channels: tuple[int, ...]
    languages: tuple[str, ...]
    rate: int
    copied: bool


@dataclass(frozen=True, slots=True)
class PlannedItem:
    """A part with its place in the film: its first frame and its number of frames.

    `copied` is about its picture. `sounds` are the tracks that become those of the film; None for a track that is silent in this
    part.
    """

    part: FilmPart
    copied: bool
    first: int
    frames: int
    sounds: tuple[int | None, ...]

    @property
    def begin(self) -> float:
        return self.part.begin if self.copied else self.part.at


@dataclass(frozen=True, slots=True)
class FilmPlan:
    """The picture and the tracks of the film, and its parts.

    `one_header` means that all pictures have the same headers. `reorder` is the largest number of frames by which a frame is
    decoded before its turn.
    """

    width: int
    height: int
    rate: tuple[int, int]
    codec: str
    one_header: bool
    reorder: int
    tracks: FilmTracks
    items: tuple[PlannedItem, ...]
    colours: tuple[str, str, str] = (BT709, BT709, BT709)

    @property
    def film(self) -> Colours:
        """The colours of pictures that are encoded again."""
        return Colours(*self.colours)

    @property
    def frames(self) -> int:
        return self.items[-1].first + self.items[-1].frames

    def time(self, frame: int) -> float:
        return float(frame / Fraction(*self.rate))

    def samples(self, item: PlannedItem, *, unit: int = 1) -> tuple[int, int]:
        """Return the first sample of an item, and the first one after it, in units of so many samples."""
        first, last = (
            round(frame / Fraction(*self.rate) * self.tracks.rate / unit) for frame in (item.first, item.first + item.frames)
        )
        return first, last


PLAN: Final = TypeAdapter(FilmPlan)


def plan_of(parts: Sequence[FilmPart]) -> FilmPlan:
    """Plan the film of these parts. Raises `StepFailed` if it would be too long."""
    lead = parts[0].shown
    whole = lead.codec in _COPIED and all(_copyable(part) and part.shown == lead for part in parts)
    width, height, rate, colours = form = lead.form if whole else _form(parts)
    copied = [whole or _fits(part, form) for part in parts]
    lengths = [part.end - part.begin if keep else part.after - part.at for part, keep in zip(parts, copied, strict=True)]
    borders = accumulate(map(Fraction, lengths), initial=Fraction(0))
    firsts = [round(border * Fraction(*rate)) for border in borders]
    if firsts[-1] > LONGEST * Fraction(*rate):
        raise StepFailed(f"The film would be longer than {LONGEST // 3600} hours.", final=True)
    tracks = _tracks(parts, copied=whole)
    items = tuple(
        PlannedItem(part, keep, first, max(after - first, 0), _assign_sounds(part, tracks))
        for part, keep, (first, after) in zip(parts, copied, pairwise(firsts), strict=True)
    )
    headers = {item.part.shown.headers if item.copied else "" for item in items}
    reorder = max(part.shown.reorder for part in parts)
    codec = lead.codec if whole else _MIXED
    return FilmPlan(width, height, rate, codec, len(headers) == 1, max(reorder, 4), tracks, items, colours)


def sound_again(plan: FilmPlan) -> FilmPlan:
    """Return the same plan with all sound encoded again."""
    return replace(plan, tracks=replace(plan.tracks, copied=False, rate=SAMPLES))


def blocks(plan: FilmPlan, count: int) -> list[range]:
    """Divide the items into `count` groups that take about as long. Items stay in order; a group may be empty."""
    work = [0, *accumulate(item.frames * (1 if item.copied else _SLOWER) for item in plan.items)]
    ends = [next(place for place, done in enumerate(work) if done * count >= work[-1] * number) for number in range(1, count)]
    return [range(first, last) for first, last in pairwise([0, *ends, len(plan.items)])]


def steps(loudness: Sequence[float | None]) -> list[int]:
    """Return the items before which the loudness would change by too much. None stands for an item that is silent, or too short to
    measure."""
    return [
        place
        for place, (before, after) in enumerate(pairwise(loudness), 1)
        if before is not None and after is not None and abs(before - after) > LARGEST_STEP
    ]


@dataclass(frozen=True, slots=True)
class ItemMarker:
    """A marker of an item, in seconds of its source."""

    item: int
    at: float
    duration: float
    accurate: bool
    replaces: bool
    text: str


def breaks(plan: FilmPlan, markers: Sequence[ItemMarker]) -> tuple[tuple[Break, ...], tuple[float, ...]]:
    """Return the breaks in the order of the film, and the times of further key frames.

    Raises `StepFailed` for a marker that is not within its item.
    """
    placed = sorted((_marker_range(plan, marker), number, marker) for number, marker in enumerate(markers))
    keys = sorted({time for (begin, end), _, marker in placed if marker.accurate for time in (begin, end)})
    ad_breaks: list[Break] = []
    shift = 0.0
    for event, ((begin, end), _, marker) in enumerate(placed, 1):
        at, until = (begin, end) if marker.accurate else (_nearest_key(plan, keys, time) for time in (begin, end))
        if marker.replaces and until <= at:
            until = _next_key(plan, keys, at)
        ad_breaks.append(Break(event, at, until if marker.replaces else at, shift, marker.duration))
        if not marker.replaces:
            shift += marker.duration
    ad_breaks.sort(key=lambda ad_break: ad_break.at)
    return tuple(ad_breaks), tuple(time for time in keys if 0 < time < plan.time(plan.frames))


def _marker_range(plan: FilmPlan, marker: ItemMarker) -> tuple[float, float]:
    """Return the begin and the end of a marker, on frames of the film."""
    item = plan.items[marker.item]
    begin = marker.at - item.begin
    end = begin + marker.duration if marker.replaces else begin
    lasts = plan.time(item.frames)
    if begin < -_NEAR or end > lasts + max(_NEAR, plan.time(1) / 2):
        where = "before its start" if begin < 0 else "past its end"
        raise StepFailed(f"The marker at {marker.text} of item {marker.item + 1} is {where}.", final=True)
    first, last = (item.first + min(round(max(time, 0.0) * Fraction(*plan.rate)), item.frames) for time in (begin, end))
    return plan.time(first), plan.time(last)


def _usual(plan: FilmPlan, number: int) -> float:
    """Return the time of the regular key frame with this number, of those every two seconds: the first frame at its time or after
    it."""
    frame = -(-number * KEY_SECONDS * plan.rate[0] // plan.rate[1])
    return plan.time(min(frame, plan.frames))


def _around(plan: FilmPlan, keys: Sequence[float], time: float) -> Iterator[float]:
    number = int(time // KEY_SECONDS)
    yield from (_usual(plan, number) for number in range(max(number - 1, 0), number + 3))
    yield from keys


def _nearest_key(plan: FilmPlan, keys: Sequence[float], time: float) -> float:
    return min(_around(plan, keys, time), key=lambda key_time: abs(key_time - time))


def _next_key(plan: FilmPlan, keys: Sequence[float], time: float) -> float:
    return min((key for key in _around(plan, keys, time) if key > time), default=time)


def _copyable(part: FilmPart) -> bool:
    return part.shown.codec in _COPIED and part.shown.steady and part.shown.bare and part.begins_at_key and not part.exact


def _fits(part: FilmPart, form: Form) -> bool:
    return _copyable(part) and part.shown.codec == _MIXED and part.shown.plain and part.shown.form == form


def _form(parts: Sequence[FilmPart]) -> Form:
    """Return the size, rate and colours of most of the film, with even sides."""
    seconds = dict.fromkeys((part.shown.form for part in parts), 0.0)
    for part in parts:
        seconds[part.shown.form] += part.after - part.at
    width, height, rate, colours = max(seconds, key=lambda form: seconds[form])
    scale = min(1.0, _LARGEST_SIDE / max(width, height))
    return max(int(width * scale) // 2 * 2, 16), max(int(height * scale) // 2 * 2, 16), rate, colours


def grid_rate(nominal: Fraction, average: Fraction, *, steady: bool) -> Fraction:
    """Return a rate for a film of this source: its own if it is steady, else a usual rate that shows most of its frames."""
    fits = 1 <= nominal <= _FASTEST and nominal.numerator <= SAMPLES * 3 and nominal.denominator <= 1001
    if (steady and fits) or nominal in _RATES:
        return nominal
    return min(_RATES, key=lambda rate: abs(rate - average))


def _tracks(parts: Sequence[FilmPart], *, copied: bool) -> FilmTracks:
    """Return as many tracks as the item with the most has, each with the largest number of channels of any item."""
    most = max(parts, key=lambda part: len(part.sounds)).sounds
    languages = tuple(sound.language for sound in most)
    track_forms = FilmTracks(tuple(sound.channels for sound in most), languages, SAMPLES, False)
    channels = list(track_forms.channels)
    for part in parts:
        for place, index in enumerate(_assign_sounds(part, track_forms)):
            if index is not None:
                channels[place] = max(channels[place], part.sounds[index].channels)
    alike = all(map(_forms(most).__eq__, (_forms(part.sounds) for part in parts)))
    rates = {sound.rate for sound in most}
    if copied and alike and len(rates) == 1 and all(sound.simple for part in parts for sound in part.sounds):
        return FilmTracks(tuple(channels), languages, rates.pop(), True)
    return replace(track_forms, channels=tuple(channels))


def _forms(sounds: Sequence[SourceSound]) -> list[tuple[int, int, str]]:
    return [(sound.channels, sound.rate, sound.language) for sound in sounds]


def _assign_sounds(part: FilmPart, tracks: FilmTracks) -> tuple[int | None, ...]:
    """Return the sound for each track of the film: the one of its language, else the first that remains."""
    remaining = list(range(len(part.sounds)))
    assigned: list[int | None] = [None] * len(tracks.languages)
    for place, language in enumerate(tracks.languages):
        same = next((index for index in remaining if language and part.sounds[index].language == language), None)
        if same is not None:
            assigned[place] = same
            remaining.remove(same)
    for place, index in enumerate(assigned):
        if index is None and remaining:
            assigned[place] = remaining.pop(0)
    return tuple(assigned)

"""The step that examines all items and plans the film. The plan is kept for the steps that carry it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from itertools import accumulate
from typing import Any, Final

from domain.event import metadata_file
from domain.kernel.errors import Malformed
from domain.kernel.stream_time import stream_point
from workers.job.context import StepContext, StepFailed, StepResult
from workers.job.stream_starts import START
from workers.job.workflows.assets.span import in_seconds
from workers.job.workflows.compose.parameters import Compose, Item
from workers.job.workflows.compose.plan import (
    PLAN,
    FilmPart,
    FilmPlan,
    ItemMarker,
    SourcePicture,
    SourceSound,
    breaks,
    grid_rate,
    plan_of,
    sound_again,
    steps,
)
from workers.job.workflows.compose.sounds import loudness
from workers.job.workflows.packets import change
from workers.job.workflows.vod.breaks import BREAKS
from workers.job.workflows.vod.codecs import channels_of
from workers.media.file import FramePacket, ProbedFile, probe_at
from workers.media.source import Picture, Sound, SourceFile, source

# Places to cut a source: between frames as they are shown, and between frames as they are decoded. This module is pure.

_HALF = 0.0005


@dataclass(frozen=True, slots=True)
class StartFrame:
    """The frame that is shown at a time, and the last key frame up to it; None if there is none."""

    at: float
    key: float | None


@dataclass(frozen=True, slots=True)
class End:
    """The end of the last frame before a time, and the time until which a copy may last.

    The frames until `copied` are decoded without those after it; it is None if there is no such time nearby. The frame begins `at`.
    """

    after: float
    copied: float | None
    at: float


def start_of(packets: Sequence[FramePacket], time: float) -> StartFrame | None:
    """Return the frame that is shown at a time; None if no frame is shown then."""
    shown = sorted(packet.at for packet in packets if packet.shown)
    at = max((frame for frame in shown if frame <= time + _HALF), default=None)
    if at is None:
        return None
    keys = [packet.at for packet in packets if packet.key and packet.shown and packet.at <= at + _HALF]
    return StartFrame(at, max(keys, default=None))


def end_of(packets: Sequence[FramePacket], time: float) -> End | None:
    """Return the end of the last frame before a time; None if there is no frame, or the source ends earlier."""
    shown = sorted((packet.at, packet.lasts) for packet in packets if packet.shown)
    until = [place for place, (at, _) in enumerate(shown) if at < time - _HALF]
    if not until:
        return None
    place = until[-1]
    after = shown[place + 1][0] if place + 1 < len(shown) else _end(shown)
    if time > after + 2 * _HALF:
        return None
    return End(after, _copy_end(packets, after), shown[place][0])


def whole(packets: Sequence[FramePacket]) -> float | None:
    """Return when the last of these frames ends; None if there are none."""
    shown = sorted((packet.at, packet.lasts) for packet in packets if packet.shown)
    return _end(shown) if shown else None


def _copy_end(packets: Sequence[FramePacket], after: float) -> float | None:
    """Return the first time, from `after` on, before which all frames are shown and decoded; None if there is none."""
    times = [packet.at for packet in packets]
    latest = list(accumulate(times, max))
    earliest = list(accumulate(reversed(times), min))[::-1]
    for place in range(1, len(times)):
        if latest[place - 1] < earliest[place] and earliest[place] >= after - _HALF:
            return earliest[place]
    end = _end(sorted((packet.at, packet.lasts) for packet in packets if packet.shown))
    return end if abs(end - after) <= 2 * _HALF else None


def _end(shown: Sequence[tuple[float, float]]) -> float:
    """Return the end of the last frame. Some containers do not state its duration; then it is as long as the one before."""
    at, lasts = shown[-1]
    if lasts <= 0 and len(shown) > 1:
        lasts = at - shown[-2][0]
    return at + lasts


PLAN_FILE: Final = "plan.json"
_SHOW: Final = ("-show_format", "-show_streams", "-show_data_hash", "sha256")
_AROUND: Final = 10.0
_STEADY: Final = 0.001
_STANDS: Final = 0.5
"""Seconds by which sound must outlast the picture before the last picture counts as one that stands still."""
_LONG: Final = 0.25
"""Seconds. A picture that stands still for longer is cut at the requested times, not where it begins and ends."""
_PROBED: Final = 0.7
"""The share of the step's progress for reading the sources; the rest is for loudness."""


@dataclass(frozen=True)
class _Examined:
    """A source that was examined.

    Its picture begins at 0. `end` is the end of its picture. `heard` is the end of its sound if that is later, since the last
    picture stands still then.
    """

    media: SourceFile
    version: str
    shown: SourcePicture
    sounds: tuple[SourceSound, ...]
    begins_at_key: bool
    end: float
    heard: float

    @property
    def whole(self) -> tuple[float, float | None]:
        """The time at which it ends, and until which it can be copied; None if it cannot be copied to its end."""
        return self.heard, self.end if self.heard == self.end else None


@dataclass
class _Library:
    """The sources of a playlist, each examined once."""

    context: StepContext[Compose]
    examined: dict[str, _Examined] = field(default_factory=dict)
    starts: dict[str, datetime | None] = field(default_factory=dict)

    def part(self, item: Item, number: int) -> FilmPart:
        media_source = self.source(item.value)
        begin, end = (None if time is None else self.seconds(item, time) for time in (item.start, item.end))
        if end is not None and end <= (begin or 0.0):
            raise StepFailed(f"The end of item {number} is not after its start.", final=True)
        at, key, stood = (
            (0.0, 0.0 if media_source.begins_at_key else None, 0.0) if begin is None else self._start(media_source, item, begin)
        )
        after, copied, last = (*media_source.whole, media_source.end) if end is None else self._end(media_source, item, end)
        whole_copy = key is not None and copied is not None
        return FilmPart(
            source=item.value,
            version=media_source.version,
            shown=media_source.shown,
            sounds=media_source.sounds,
            at=at,
            after=after,
            begin=key if whole_copy and key is not None else at,
            end=copied if whole_copy and copied is not None else after,
            begins_at_key=whole_copy,
            exact=item.frame_accurate and not (begin is None and end is None),
            stands=max(after - max(last, at), 0.0),
            stood=stood,
        )

    def source(self, event: str) -> _Examined:
        if event not in self.examined:
            self.examined[event] = _examine(self.context, event)
        return self.examined[event]

    def seconds(self, item: Item, time: str) -> float:
        """Return a time in seconds since the start of its source."""
        point = stream_point(time, field="time")
        if point.date_time is None:
            return in_seconds(point.time_span)
        if item.value not in self.starts:
            self.starts[item.value] = _start_of_stream(self.context, item.value)
        start = self.starts[item.value]
        if start is None:
            raise StepFailed(f"The source of the Event {item.value} has no timecode, so {time} cannot be found in it.", final=True)
        return (point.date_time - start).total_seconds()

    def _start(self, examined: _Examined, item: Item, time: float) -> tuple[float, float | None, float]:
        """Return when the picture of an item begins, the last key frame up to it, and how long the picture has stood still then."""
        frame = start_of(examined.media.file.packets((time - _AROUND, time + _AROUND)), time)
        if frame is None or time >= examined.heard:
            raise StepFailed(f"{examined.media.file.name} has no picture at {item.start}.", final=True)
        return (time, None, time - frame.at) if time - frame.at > _LONG else (frame.at, frame.key, 0.0)

    def _end(self, examined: _Examined, item: Item, time: float) -> tuple[float, float | None, float]:
        """Return when the picture of an item ends, until when it can be copied, and since when its last picture stands still."""
        if examined.end < time <= examined.heard:
            return time, None, examined.end
        media = end_of(examined.media.file.packets((time - _AROUND, time + _AROUND)), time)
        if media is None:
            raise StepFailed(f"{item.end} is past the end of {examined.media.file.name}.", final=True)
        return (time, None, media.at) if media.after - media.at > _LONG else (media.after, media.copied, media.after)


def plan_film(context: StepContext[Compose]) -> StepResult:
    items, library = context.parameters.playlist.items, _Library(context)
    parts = []
    for number, item in enumerate(items, 1):
        parts.append(library.part(item, number))
        context.progress(_PROBED * number / len(items), f"item {number} of {len(items)}")
    plan = _steady(context, parts, library)
    if not plan.frames:
        raise StepFailed("The items are shorter than a frame.", final=True)
    if plan.tracks.copied and (context.parameters.playlist.loudness is not None or _has_uneven_loudness(context, plan, library)):
        plan = sound_again(plan)
    media, keys = breaks(plan, [marker for number, item in enumerate(items) for marker in _markers(library, item, number)])
    file = context.workspace / PLAN_FILE
    file.write_bytes(PLAN.dump_json(plan))
    context.keep(file, PLAN_FILE)
    copied = sum(item.copied for item in plan.items)
    sound = "none" if not plan.tracks.channels else "copied" if plan.tracks.copied else "encoded again"
    return StepResult(
        message=f"{copied} of {len(items)} items are copied, sound is {sound}",
        metadata={"copied": copied, "sound": sound, "breaks": BREAKS.dump_python(media), "keys": keys},
    )


def _steady(context: StepContext[Any], parts: list[FilmPart], library: _Library) -> FilmPlan:
    """Return the plan that copies no picture that changes, or that differs from the beginning of its source.

    Only parts that would be copied are examined, and equal parts only once.
    """
    changes: dict[tuple[str, float, float], float | None] = {}
    while True:
        plan = plan_of(parts)
        for number, item in enumerate(plan.items):
            part = item.part
            key = (part.source, part.begin, part.end)
            if item.copied and key not in changes:
                file = library.source(part.source).media.file
                changes[key] = change(context, file, codec=part.shown.codec, begin=part.begin, end=part.end)
                if (at := changes[key]) is not None:
                    context.log(f"The picture of {file.name} changes at {at:.3f} s, so item {number + 1} is encoded again.")
            if item.copied and changes[key] is not None:
                parts[number] = replace(part, exact=True)
        if not any(item.copied and parts[number].exact for number, item in enumerate(plan.items)):
            return plan


def read_plan(context: StepContext[Any]) -> FilmPlan:
    return PLAN.validate_json(context.job_file(PLAN_FILE).read_bytes())


def version_of(context: StepContext[Any], event: str) -> str:
    """Return the version of a source's file, which changes whenever the file is replaced or written to."""
    path = context.path(_path(event))
    try:
        status = path.stat()
    except FileNotFoundError:
        raise StepFailed(f"There is no file {_path(event)}.", final=True) from None
    # A file that was fetched from a bucket is in a folder that is named after its version there.
    mine = path.parent.name if context.environment.fetch is not None else f"{status.st_ino} {status.st_mtime_ns}"
    return f"{mine} {status.st_size}"


def check_unchanged(context: StepContext[Any], part: FilmPart) -> None:
    if version_of(context, part.source) != part.version:
        raise StepFailed(f"{_path(part.source)} was changed while the film was made.", final=True)


def source_of(context: StepContext[Any], event: str) -> ProbedFile:
    return probe_at(context, context.path(_path(event)), name=_path(event), show=_SHOW)


def _path(event: str) -> str:
    return f"{event}/{event}.mp4"


def _examine(context: StepContext[Any], event: str) -> _Examined:
    version = version_of(context, event)
    media = source(source_of(context, event))
    streams = {stream["index"]: stream for stream in media.file.probed["streams"]}
    stream = streams[media.picture.index]
    begin = min((packet for packet in media.file.packets((0.0, 1.0)) if packet.shown), key=lambda packet: packet.at, default=None)
    end = whole(media.file.packets((max(media.lasts - _AROUND, 0.0), media.lasts + _AROUND))) or media.lasts
    if (duration := _seconds(stream.get("duration"))) > 0:
        replace(media, lasts=_seconds(stream.get("start_time")) + duration - media.file.start).check_length(end)
    sounds = tuple(_sound_of(streams[sound.index], sound, origin=media.file.start) for sound in media.sounds)
    heard = max((_ends(streams[sound.index], origin=media.file.start) for sound in media.sounds), default=0.0)
    at_key = begin is not None and begin.key
    return _Examined(media, version, _picture_of(media, stream), sounds, at_key, end, heard if heard - end > _STANDS else end)


def _picture_of(media: SourceFile, stream: Mapping[str, Any]) -> SourcePicture:
    picture, nominal = media.picture, _fraction(stream.get("r_frame_rate"))
    film = picture.colours.film
    average = _fraction(stream.get("avg_frame_rate"))
    steady = bool(average) and abs(nominal / average - 1) < _STEADY
    rate = grid_rate(nominal, average or Fraction(25), steady=steady)
    reorder = stream.get("has_b_frames")
    return SourcePicture(
        codec=picture.codec,
        width=picture.width,
        height=picture.height,
        rate=(rate.numerator, rate.denominator),
        headers=str(stream.get("extradata_hash")),
        steady=steady and rate == nominal and media.file.is_mp4,
        plain=_plain(picture, stream),
        reorder=min(reorder, 16) if isinstance(reorder, int) else 16,
        bare=_bare(picture, stream),
        colours=(film.matrix, film.primaries, film.transfer),
    )


def _bare(picture: Picture, stream: Mapping[str, Any]) -> bool:
    turned = any("rotation" in side_data for side_data in stream.get("side_data_list", ()) if isinstance(side_data, dict))
    return not turned and (picture.width, picture.height) == (stream.get("width"), stream.get("height"))


def _plain(picture: Picture, stream: Mapping[str, Any]) -> bool:
    even = not (picture.width | picture.height) & 1
    progressive_sdr = picture.colours.is_film and not picture.interlaced and stream.get("pix_fmt") == "yuv420p"
    return _bare(picture, stream) and even and progressive_sdr


def _sound_of(stream: Mapping[str, Any], sound: Sound, *, origin: float) -> SourceSound:
    rate, channels = int(stream["sample_rate"]) if str(stream.get("sample_rate")).isdecimal() else 0, channels_of(sound)
    simple = sound.codec == "aac" and stream.get("profile") == "LC" and sound.channels == channels and rate > 0
    return SourceSound(sound.index, channels, rate, sound.language, simple, _seconds(stream.get("start_time")) - origin)


def _has_uneven_loudness(context: StepContext[Any], plan: FilmPlan, library: _Library) -> bool:
    """Return True if the loudness of copied sound jumps between two items. Equal items are measured once."""
    measured: dict[tuple[str, float, float, int], float | None] = {}
    for place in range(len(plan.tracks.channels)):
        heard = []
        for number, item in enumerate(plan.items, 1):
            index, part = item.sounds[place], item.part
            if index is None:
                continue
            key = (part.source, part.begin, part.end, index)
            if key not in measured:
                file, sound = library.source(part.source).media.file, part.sounds[index]
                measured[key] = loudness(context, file, sound=sound, begin=part.begin, lasts=part.end - part.begin)
            heard.append(measured[key])
            context.progress(_PROBED + (1 - _PROBED) * number / len(plan.items), f"loudness of item {number}")
        if uneven := steps(heard):
            context.log(f"Sound is encoded again: its loudness jumps before item {uneven[0] + 1}.")
            return True
    return False


def _markers(library: _Library, item: Item, number: int) -> list[ItemMarker]:
    return [
        ItemMarker(
            item=number,
            at=library.seconds(item, marker.startAt),
            duration=in_seconds(marker.duration),
            accurate=marker.frameAccurate is True,
            replaces=marker.type == 1,
            text=marker.startAt,
        )
        for marker in item.markers or ()
    ]


def _start_of_stream(context: StepContext[Any], event: str) -> datetime | None:
    """Return when the first frame of a stream was captured: as its packager noted it, else as its Event states it; None if neither
    does."""
    try:
        with context.path(f"{event}/{metadata_file.NAME}").open("rb") as opened:
            noted = metadata_file.start_time(opened.read(metadata_file.LARGEST))
    except OSError:
        noted = None
    answer = context.ask(START, event=event)
    if "refused" in answer:
        raise StepFailed(str(answer["refused"]))
    for start in (noted, answer.get("start")):
        try:
            point = stream_point(start, field="startTime").date_time
        except Malformed:
            continue
        if point is not None:
            return point
    return None


def _ends(stream: Mapping[str, Any], *, origin: float) -> float:
    """Return when a track ends, by its header; 0 if the header does not state it."""
    lasts = _seconds(stream.get("duration"))
    return _seconds(stream.get("start_time")) + lasts - origin if lasts > 0 else 0.0


def _fraction(value: object) -> Fraction:
    above, _, below = str(value).partition("/")
    return Fraction(int(above), int(below)) if above.isdecimal() and below.isdecimal() and int(below) else Fraction(0)


def _seconds(value: object) -> float:
    try:
        return float(value) if isinstance(value, str) else 0.0
    except ValueError:
        return 0.0

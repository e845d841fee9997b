"""Joins a recording to one MP4 file, with ffmpeg and files of the workspace only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from shutil import copyfileobj
from typing import Any, Final

from domain.job.values import Severity
from projections.kernel.sizes import MIB
from workers.job.context import StepContext, StepFailed
from workers.job.workflows.capture.changing_tracks import Coding, Conversion, at_time, log_changes
from workers.job.workflows.capture.completeness import check_whole
from workers.job.workflows.capture.film import FRAME, HALF, Cut, Made, write_film
from workers.job.workflows.capture.pieces import ADJOINING, Packet, Piece, SegmentRun, Workbench, from_key, place_pieces, runs
from workers.job.workflows.capture.recording import Recording
from workers.job.workflows.encode import encode
from workers.job.workflows.vod.renditions import CONVERTED
from workers.media.file import ProbedFile, seconds
from workers.media.track_headers import WRAP

MOST_PIECES: Final = 500
_ROOM: Final = 10.0
"""The place of the first frame in a file that is joined from pieces: time stamps of MPEG-TS are not negative."""
_EARLY: Final = 0.5
_LATE: Final = 0.2


@dataclass(frozen=True, slots=True)
class Joined:
    path: Path
    cut: Cut
    pieces: int


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of a track: the used part of a run, the shift of its time stamps, and its places from `begin` to `end`.

    `sound` is the place at which its audio begins.
    """

    run: SegmentRun
    used: tuple[float, float]
    shift: float
    begin: float
    end: float
    sound: float | None
    opens: float | None = None
    """The time at which its first key frame is decoded, if it does not begin with one: what is before cannot be decoded."""


def join_pieces(context: StepContext[Any], recorded: Recording, *, accurate: bool, copy_ts: bool) -> Joined:
    workbench = Workbench(context, recorded)
    wraps = recorded.container == "mpegts"
    main = list(runs(recorded.plans["main"]))
    if len(main) > MOST_PIECES:
        raise StepFailed(f"The recording has more than {MOST_PIECES} pieces.", final=True)
    pieces = place_pieces(from_key(main, workbench), workbench, keep_gaps=copy_ts, wraps=wraps)
    cut = _cut(pieces, recorded, accurate=accurate)
    tracks = [_pictures(pieces), *_audio(recorded, workbench, pieces)]
    raw = all(len(track) == 1 and track[0].shift == 0 for track in tracks)
    coding = Coding(workbench, [[part.run for part in track] for track in tracks], joined=not raw, transport_stream=wraps)
    if cut.moment > max(recorded.start, main[0].begin) + _LATE:
        begins = at_time(cut.moment, clocked=recorded.clocked)
        context.log(f"The film begins at {begins}, with the first key frame: frames before it cannot be decoded.", Severity.WARN)
    log_changes(context, coding, clocked=recorded.clocked)
    origin = 0.0 if raw else pieces[0].begins - _ROOM
    files = [context.workspace / f"track-{number}" for number, _ in enumerate(tracks)]
    for number, (file, track) in enumerate(zip(files, tracks, strict=True)):
        if raw:
            workbench.write(track[0].run, file)
        else:
            brings = {part.run: coding.conversion(part.run, file=number) for part in track}
            _join_parts(context, workbench, made=file, track=track, origin=origin, brings=brings)
    how = Made(cut, origin, accurate, copy_ts, coding.varying, coding.picture, coding.converted)
    return Joined(_film(context, recorded, files, how=how, pieces=pieces), cut, len(pieces))


def _film(context: StepContext[Any], recorded: Recording, files: Sequence[Path], *, how: Made, pieces: Sequence[Piece]) -> Path:
    """Make the film from files of tracks, compare it with them, and delete them."""
    made = context.workspace / CONVERTED
    write_film(context, files, made=made, how=how)
    gaps = [(before.ends, after.begins) for before, after in pairwise(pieces)]

    def shown(place: float) -> str:
        return at_time(_moment(pieces, place), clocked=recorded.clocked)

    check_whole(context, files, made=made, how=how, gaps=gaps, shown=shown)
    for file in files:
        file.unlink()
    return made


def _pictures(pieces: Sequence[Piece]) -> list[_Part]:
    """Return the parts of the picture. The first piece begins with its key frame anyway."""
    return [
        _Part(
            *(
                piece.run,
                (piece.run.begin, piece.run.end),
                piece.shift,
                piece.begins,
                piece.place(piece.run.end),
                _shift_time(piece.sound, piece.shift),
            ),
            opens=piece.opens if number else None,
        )
        for number, piece in enumerate(pieces)
    ]


def _cut(pieces: list[Piece], recorded: Recording, *, accurate: bool) -> Cut:
    """Return the cut: from the frame that is shown at the start, or the key frame before it, until the last one that begins before
    the end."""
    piece, final = pieces[0], pieces[-1]
    at = piece.run.segments[0].at
    frames = sorted(piece.first, key=lambda frame: frame.pts)
    moments = [at + frame.pts - piece.origin for frame in frames]
    index = max((n for n, moment in enumerate(moments) if moment <= recorded.start + HALF), default=0)
    if not accurate or not any(frame.key for frame in frames[: index + 1]):
        keys = [n for n, frame in enumerate(frames) if frame.key]
        index = max((n for n in keys if n <= index), default=keys[0])
    first = frames[index]
    last, place = _last(final, recorded.end)
    end = place + last.lasts
    before = frames[index - 1].pts + piece.shift if index else None
    cut = Cut(first.pts + piece.shift, before, first.dts + piece.shift, end, place, moments[index])
    if cut.lasts <= 0:
        raise StepFailed("The recording has no frame between start and end.", final=True)
    return cut


def _last(piece: Piece, end: float) -> tuple[Packet, float]:
    """Return the last frame that begins before the end, and its place."""
    until = min(end, piece.run.end)
    beginning = piece.origin - piece.run.segments[0].at
    frames = [frame for frame in piece.last if frame.pts - beginning < until - FRAME]
    last_frame = max(frames or piece.last, key=lambda frame: frame.pts)
    return last_frame, last_frame.pts + piece.shift


def _moment(pieces: Sequence[Piece], place: float) -> float:
    """Return the time in the recording of the picture at a place."""
    piece = next((piece for piece in reversed(pieces) if piece.begins <= place + FRAME), pieces[0])
    return piece.run.segments[0].at + place - piece.begins


def _shift_time(time: float | None, shift: float) -> float | None:
    return None if time is None else time + shift


def _sound_ranges(track: list[_Part]) -> list[tuple[float, float]]:
    """Return the places between which the audio of each part is used.

    A muxer writes audio some time before or after the video of its time, so where parts adjoin, the audio changes from one to the
    other where that of the second begins.
    """
    adjoins = [False, *(abs(b.used[0] - a.used[1]) <= ADJOINING for a, b in pairwise(track))]
    begins = [
        part.sound if met and part.sound is not None and part.begin - _EARLY < part.sound < part.begin else part.begin
        for part, met in zip(track, adjoins, strict=True)
    ]
    ends = [begin if met else part.end for part, begin, met in zip(track, begins[1:], adjoins[1:], strict=False)]
    return list(zip(begins, [*ends, track[-1].end], strict=True))


def _audio(recorded: Recording, workbench: Workbench, pieces: list[Piece]) -> list[list[_Part]]:
    """Return separate audio, moved like the video of the same time, and left out where there is no video."""
    plan = recorded.plans.get("audio")
    if plan is None or not plan.used:
        return []
    parts: list[_Part] = []
    for run in runs(plan):
        stamps = workbench.packets(run, run.segments[0], stream="a:0")
        origin = min(packet.pts for packet in stamps)
        for piece in pieces:
            begin, end = max(run.begin, piece.run.begin), min(run.end, piece.run.end)
            if end - begin <= FRAME:
                continue
            shift = _alongside(run, origin, piece, pieces=pieces)
            if recorded.container == "mpegts":
                shift += round((piece.place(run.segments[0].at) - origin - shift) / WRAP) * WRAP
            sound = origin + shift if begin == run.begin else None
            parts.append(_Part(run, (begin, end), shift, piece.place(begin), piece.place(end), sound))
    return [parts]


def _alongside(run: SegmentRun, origin: float, piece: Piece, *, pieces: list[Piece]) -> float:
    """Return the shift of audio next to a piece of video: that of the video of its own source, otherwise the shift to its expected
    place."""
    expected = piece.place(run.segments[0].at)
    shifts = [
        other.shift + other.left_out - piece.left_out
        for other in (piece, *pieces)
        if other.run.segments[0].source == run.segments[0].source
    ]
    return next((shift for shift in shifts if abs(origin + shift - expected) < 1.0), expected - origin)


def _join_parts(
    context: StepContext[Any],
    workbench: Workbench,
    *,
    made: Path,
    track: list[_Part],
    origin: float,
    brings: Mapping[SegmentRun, Conversion],
) -> None:
    """Write one file with the time stamps of the track, less `origin`. Pieces are joined as MPEG-TS."""
    piece, moved = made.with_name(f"{made.name}-piece"), made.with_name(f"{made.name}-moved.ts")
    with made.open("wb") as file:
        for part, sound in zip(track, _sound_ranges(track), strict=True):
            workbench.write(part.run, piece)
            _move(context, piece=piece, moved=moved, part=part, sound=sound, origin=origin, conversion=brings[part.run])
            with moved.open("rb") as source:
                copyfileobj(source, file, MIB)
            moved.unlink()
    piece.unlink()


def _move(
    context: StepContext[Any],
    *,
    piece: Path,
    moved: Path,
    part: _Part,
    sound: tuple[float, float],
    origin: float,
    conversion: Conversion,
) -> None:
    begin, until, end = (seconds(place - part.shift - FRAME) for place in (*sound, part.end))
    source = ProbedFile(context, piece, "a piece of the recording", {})
    opens = "" if part.opens is None else f"+lt(dts*tb\\,{seconds(part.opens - FRAME)})"
    drops = ("-bsf:v", f"noise=drop=gte(dts*tb\\,{end}){opens}", "-bsf:a", f"noise=drop=lt(pts*tb\\,{begin})+gte(pts*tb\\,{until})")
    times = ("-output_ts_offset", seconds(part.shift - origin), "-muxdelay", "0", "-muxpreload", "0")
    output = ("-mpegts_flags", "+initial_discontinuity", "-f", "mpegts", moved.name)
    tracks = ("-map", "0:v?", "-map", "0:a?", "-c", "copy", *conversion)
    encode(context, source, "-copyts", *source.input(), *tracks, *drops, *times, *output, lasts=0.0)

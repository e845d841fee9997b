"""Joins what was recorded to one MP4 file, with ffmpeg and files of the workspace only."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from shutil import copyfileobj
from typing import Any, Final

from projections.kernel.sizes import MIB
from workers.jobs.context import StepContext, StepFailed
from workers.jobs.workflows.capture.pieces import ADJOINING, WRAP, Packet, Piece, Run, Workbench, placed, runs
from workers.jobs.workflows.capture.recording import Recording
from workers.jobs.workflows.encode import ENCODED, EVEN_SIZE, SAME_TIMES, encode
from workers.jobs.workflows.vod.renditions import CONVERTED
from workers.media.file import MediaFile, seconds
from workers.media.outputs import MP4

MOST_PIECES: Final = 500
_HALF: Final = 0.0005
_FRAME: Final = 0.001
_ROOM: Final = 10.0
"""Where the first frame lies in a file that is put together from pieces: time stamps of MPEG-TS are not negative."""
_EARLY: Final = 0.5
_FORWARD: Final = "select='isnan(prev_selected_t)+gt(t,prev_selected_t)'"
"""Where sources with other key frames adjoin, the last frames of one may be those that others were predicted from."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Places of the first frame, of the one before and of the end of the last one. `dts` is when the first one is decoded."""

    first: float
    before: float | None
    dts: float
    end: float
    last: float
    moment: float
    """When the first frame was shown, in the times of the recording."""

    @property
    def lasts(self) -> float:
        return self.end - self.first


@dataclass(frozen=True, slots=True)
class Joined:
    path: Path
    cut: Cut
    pieces: int


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of a track: what of a run is used, how far its time stamps are moved, and between which places: `begin` to `end`.
    `sound` is the place where its audio begins."""

    run: Run
    used: tuple[float, float]
    shift: float
    begin: float
    end: float
    sound: float | None


def join_pieces(context: StepContext[Any], recorded: Recording, *, accurate: bool, copy_ts: bool) -> Joined:
    workbench = Workbench(context, recorded)
    wraps = recorded.container == "mpegts"
    main = list(runs(recorded.plans["main"]))
    if len(main) > MOST_PIECES:
        raise StepFailed(f"The recording has more than {MOST_PIECES} pieces.", final=True)
    pieces = placed(main, workbench, keep_gaps=copy_ts, wraps=wraps)
    cut = _cut(pieces, recorded, accurate=accurate)
    parts = [
        _Part(one.run, (one.run.begin, one.run.end), one.shift, one.begins, one.place(one.run.end), _moved(one.sound, one.shift))
        for one in pieces
    ]
    tracks = [parts, *_audio(recorded, workbench, pieces)]
    raw = all(len(one) == 1 and one[0].shift == 0 for one in tracks)
    origin = 0.0 if raw else pieces[0].begins - _ROOM
    files = [_file(context, workbench, track, raw=raw, origin=origin, name=f"track-{n}") for n, track in enumerate(tracks)]
    made = context.workspace / CONVERTED
    _mux(context, files, made, cut=cut, origin=origin, accurate=accurate, copy_ts=copy_ts)
    for file in files:
        file.unlink()
    return Joined(made, cut, len(pieces))


def _cut(pieces: list[Piece], recorded: Recording, *, accurate: bool) -> Cut:
    """From the frame that is shown at the start, or the key frame before it, until the last one that begins before the end."""
    piece, final = pieces[0], pieces[-1]
    at = piece.run.segments[0].at
    frames = sorted(piece.first, key=lambda one: one.pts)
    moments = [at + one.pts - piece.origin for one in frames]
    index = max((n for n, moment in enumerate(moments) if moment <= recorded.start + _HALF), default=0)
    if not accurate or not any(one.key for one in frames[: index + 1]):
        keys = [n for n, one in enumerate(frames) if one.key]
        if not keys:
            raise StepFailed("The recording does not begin with a key frame, so its first segment cannot be decoded.", final=True)
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
    """The last frame that begins before the end, and its place."""
    until = min(end, piece.run.end)
    beginning = piece.origin - piece.run.segments[0].at
    frames = [one for one in piece.last if one.pts - beginning < until - _FRAME]
    found = max(frames or piece.last, key=lambda one: one.pts)
    return found, found.pts + piece.shift


def _moved(time: float | None, shift: float) -> float | None:
    return None if time is None else time + shift


def _heard(track: list[_Part]) -> list[tuple[float, float]]:
    """Between which places the audio of each part is used. A muxer writes audio some time before or after the video of its time, so
    where parts adjoin it goes over from one to the other where that of the other begins."""
    adjoins = [False, *(abs(b.used[0] - a.used[1]) <= ADJOINING for a, b in pairwise(track))]
    begins = [
        one.sound if met and one.sound is not None and one.begin - _EARLY < one.sound < one.begin else one.begin
        for one, met in zip(track, adjoins, strict=True)
    ]
    ends = [begin if met else one.end for one, begin, met in zip(track, begins[1:], adjoins[1:], strict=False)]
    return list(zip(begins, [*ends, track[-1].end], strict=True))


def _audio(recorded: Recording, workbench: Workbench, pieces: list[Piece]) -> list[list[_Part]]:
    """Separate audio, moved as the video of the same time was, and left out where there is no video."""
    plan = recorded.plans.get("audio")
    if plan is None or not plan.used:
        return []
    found: list[_Part] = []
    for run in runs(plan):
        stamps = workbench.packets(run, run.segments[0], stream="a:0")
        origin = min(one.pts for one in stamps)
        for piece in pieces:
            begin, end = max(run.begin, piece.run.begin), min(run.end, piece.run.end)
            if end - begin <= _FRAME:
                continue
            shift = _alongside(run, origin, piece, pieces=pieces)
            if recorded.container == "mpegts":
                shift += round((piece.place(run.segments[0].at) - origin - shift) / WRAP) * WRAP
            sound = origin + shift if begin == run.begin else None
            found.append(_Part(run, (begin, end), shift, piece.place(begin), piece.place(end), sound))
    return [found]


def _alongside(run: Run, origin: float, piece: Piece, *, pieces: list[Piece]) -> float:
    """How far audio is moved beside a piece of video: as the video of its own source is, else to where it is expected."""
    expected = piece.place(run.segments[0].at)
    shifts = [
        one.shift + one.left_out - piece.left_out
        for one in (piece, *pieces)
        if one.run.segments[0].source == run.segments[0].source
    ]
    return next((shift for shift in shifts if abs(origin + shift - expected) < 1.0), expected - origin)


def _file(context: StepContext[Any], workbench: Workbench, track: list[_Part], *, raw: bool, origin: float, name: str) -> Path:
    """One file with the time stamps of the track, less `origin`. Several pieces are brought together as MPEG-TS."""
    made = context.workspace / name
    if raw:
        workbench.write(track[0].run, made)
        return made
    piece, moved = context.workspace / f"{name}-piece", context.workspace / f"{name}-moved.ts"
    with made.open("wb") as file:
        for part, sound in zip(track, _heard(track), strict=True):
            workbench.write(part.run, piece)
            _move(context, piece, moved, part=part, sound=sound, origin=origin)
            with moved.open("rb") as source:
                copyfileobj(source, file, MIB)
            moved.unlink()
    piece.unlink()
    return made


def _move(context: StepContext[Any], piece: Path, moved: Path, *, part: _Part, sound: tuple[float, float], origin: float) -> None:
    begin, until, end = (seconds(place - part.shift - _FRAME) for place in (*sound, part.end))
    source = MediaFile(context, piece, "a piece of the recording", {})
    drops = ("-bsf:v", f"noise=drop=gte(dts*tb\\,{end})", "-bsf:a", f"noise=drop=lt(pts*tb\\,{begin})+gte(pts*tb\\,{until})")
    times = ("-output_ts_offset", seconds(part.shift - origin), "-muxdelay", "0", "-muxpreload", "0")
    output = ("-mpegts_flags", "+initial_discontinuity", "-f", "mpegts", moved.name)
    tracks = ("-map", "0:v?", "-map", "0:a?", "-c", "copy")
    encode(context, source, "-copyts", *source.input(), *tracks, *drops, *times, *output, lasts=0.0)


def _mux(
    context: StepContext[Any], files: list[Path], made: Path, *, cut: Cut, origin: float, accurate: bool, copy_ts: bool
) -> None:
    sources = [MediaFile(context, file, "the recording", {}) for file in files]
    inputs = [option for one in sources for option in one.input()]
    tracks = ("-map", "0:v:0", "-map", "0:a?" if len(files) == 1 else "1:a?")
    coded = (_accurate if accurate else _copied)(cut, origin, copy_ts=copy_ts)
    encode(context, sources[0], "-copyts", *inputs, *tracks, *coded, *MP4, made.name, lasts=cut.lasts, part=(0.2, 1.0))


def _copied(cut: Cut, origin: float, *, copy_ts: bool) -> tuple[str, ...]:
    first, dts, end = (seconds(time - origin) for time in (cut.first - _HALF, cut.dts - _HALF, cut.end - _HALF))
    video = f"noise=drop=lt(pts*tb\\,{first})+lt(dts*tb\\,{dts})+gte(dts*tb\\,{end})"
    audio = f"noise=drop=lt(pts*tb\\,{first})+gte(pts*tb\\,{end})"
    offset = origin if copy_ts else origin - cut.first
    return ("-c", "copy", "-bsf:v", video, "-bsf:a", audio, "-output_ts_offset", seconds(offset))


def _accurate(cut: Cut, origin: float, *, copy_ts: bool) -> tuple[str, ...]:
    """Between frames, since times are rounded."""
    begin = cut.first - _FRAME if cut.before is None else (cut.before + cut.first) / 2
    middle = (cut.last + cut.end) / 2
    video = f"trim=start={seconds(begin - origin)}:end={seconds(middle - origin)}"
    audio = f"atrim=start={seconds(cut.first - origin)}:end={seconds(cut.end - origin)}"
    moved = seconds(cut.first - origin if not copy_ts else -origin)
    filters = ("-filter:v", f"{video},{_FORWARD},setpts=PTS-{moved}/TB,{EVEN_SIZE}", "-filter:a", f"{audio},asetpts=PTS-{moved}/TB")
    return (*filters, *ENCODED, *SAME_TIMES)

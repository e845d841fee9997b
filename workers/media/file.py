"""A media file that a step reads: probed by ffprobe, and read by ffmpeg under the same limits.

Input is untrusted: the name of a file as well as what its headers say about times and sizes. Files that refer to others, such as
playlists, are refused by their format before anything that they name is opened.

All times count from the first picture that a decoder shows (ADR 0105): those of `frame`, `frames` and `packets`, those that `input`
takes, and those of the frames and samples that ffmpeg then reads. In an audio file they count from its own start.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, inf
from pathlib import Path
from re import compile as regex
from typing import Any, Final, Protocol

from domain.job.values import Severity
from workers.media.errors import Unusable

SECONDS: Final = 120.0
ALL_OF_IT: Final = ("-show_format", "-show_streams", "-show_programs")
_CONTAINERS: Final = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,asf,flv,mpeg,mpegts,mxf,gxf,dv,ivf,ogg,nut,rm,wtv,"
    "aac,ac3,aiff,amr,ape,au,caf,dts,eac3,flac,loas,mp3,truehd,tta,w64,wav,wv,"
    "av1,h261,h263,h264,hevc,m4v,mpegvideo,obu,vc1,vvc,yuv4mpegpipe,ass,srt,webvtt"
)
"""The formats that may be read: none of them refers to other files, as playlists do."""
_LIMITS: Final = ("-protocol_whitelist", "file", "-format_whitelist", _CONTAINERS)
_LONG: Final = 3600.0
_BEFORE_END: Final = 60.0
_ROUNDED: Final = 0.00001
_DISCONTINUOUS: Final = frozenset({"mpegts", "mpeg", "ogg"})
_JUMP: Final = 10.0
"""Seconds between two packets above which ffmpeg assumes that the clock was reset."""
LARGEST_SIDE: Final = 16_384
"""The largest width or height in pixels. A picture of 100,000 pixels in a row is an attack, or a mistake."""
_SHOWN: Final = regex(r" pts_time:\s*(-?[\d.]+)")
_BEFORE_KEY: Final = 0.01
_HALF: Final = 0.0005
_AROUND: Final = 10.0
"""Seconds around a time in which its frame is searched. The demuxer begins at the key frame before."""
_STANDS: Final = 0.25
"""Seconds of sound after the last picture above which the picture counts as frozen until the end of the sound."""
_CLOCK: Final = regex(r"(\d+):(\d\d):(\d\d(?:\.\d+)?)")


class ProgramResult(Protocol):
    """A program that has ended, with the beginning of its output and the end of its errors."""

    @property
    def status(self) -> int: ...
    @property
    def output(self) -> bytes: ...
    @property
    def errors(self) -> bytes: ...


class Programs(Protocol):
    """Runs ffprobe and ffmpeg, and writes a log: the context of a step."""

    def run(self, program: str, *args: str, seconds: float) -> ProgramResult: ...
    def log(self, message: str, severity: Severity = Severity.INFO) -> None: ...


@dataclass(frozen=True, slots=True)
class AudioTrack:
    """An audio track. `index` is that of the stream in its file. `bit_rate` is 0, and `language` None, if the file does not state
    them."""

    index: int
    bit_rate: int
    language: str | None


@dataclass(frozen=True, slots=True)
class VideoTrack:
    """A video track. `width` and `height` are in pixels; the other fields are as in `AudioTrack`."""

    index: int
    width: int
    height: int
    bit_rate: int
    language: str | None

    def rank(self) -> tuple[int, int]:
        """Return the sort key: the highest track is that with the most pixels, then the most bits."""
        return self.width * self.height, self.bit_rate


@dataclass(frozen=True, slots=True)
class FramePacket:
    """A coded frame: the time at which it is shown and its duration, in seconds; the duration is 0 if the file does not state it. A
    frame that is not `shown` is only there to decode others, or is before the first picture that is shown. It is decoded at
    `decoded`."""

    at: float
    lasts: float
    key: bool
    shown: bool
    decoded: float = 0.0


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame by its times, in seconds. `before` is the time of the previous frame, `after` that of the next one or the end of this
    one; `key` is the time of the last key frame up to it, which is decoded at `key_decoded`."""

    at: float
    before: float | None
    after: float
    key: float
    key_decoded: float

    @property
    def begin(self) -> float:
        """The time half a frame before the frame, since times are rounded."""
        return self.at - (self.after - self.at) / 2 - _HALF if self.before is None else (self.before + self.at) / 2

    @property
    def middle(self) -> float:
        return (self.at + self.after) / 2

    @property
    def seek(self) -> float:
        """A time to seek to so that decoding begins at its key frame or before. Demuxers of transport streams search for the time
        at which a frame is decoded, which may be long before it is shown. Some land after the requested time, so everything before
        the frame is cut off after decoding."""
        return max(min(self.key, self.key_decoded) - _BEFORE_KEY, 0.0)


@dataclass(frozen=True, slots=True)
class StreamProgramme:
    """A programme of a transport stream. `tracks` are the indexes of its streams."""

    number: int
    name: str
    tracks: frozenset[int]

    @property
    def described(self) -> str:
        return f"programme {self.number} ({self.name})" if self.name else f"programme {self.number}"


_Times = tuple[float, float, bool, float]
"""The time and duration of a frame, whether it is a key frame, and the time at which it is decoded."""


@dataclass(frozen=True)
class ProbedFile:
    """A probed file. `name` is its path below the media root, which may be shown. `programme` is the number of the programme of a
    transport stream that is read; without it, that of the highest picture."""

    programs: Programs
    path: Path
    name: str
    probed: dict[str, Any] = field(repr=False)
    programme: int | None = None
    early: float = 0.0
    """Seconds before the first picture from which times count, for a step that shows something there."""

    def input(self, seek: float = 0.0, *, used: Collection[int] | None = None) -> tuple[str, ...]:
        """Return the file as an input of ffmpeg, from a time on. Times of frames then count from there. Frames before the first
        picture have negative times. `used` are the streams that the command reads, if they are not the picture and the sounds."""
        if seek > 0:
            moved: tuple[str, ...] = ("-ss", seconds(self.origin - self.began + seek))
        else:
            offset = self._zero(used) - self.origin
            moved = ("-itsoffset", seconds(offset)) if abs(offset) > _ROUNDED else ()
        return (*moved, *self._as_it_is)

    def _zero(self, used: Collection[int] | None) -> float:
        """Return the time stamp that is time 0 for ffmpeg by default: in formats whose clock may jump, the first one of the tracks
        that it reads."""
        if _DISCONTINUOUS.isdisjoint(self.formats):
            return self.began
        read = {self.video.index, *(audio.index for audio in self.audios)} if used is None and self.videos else used
        starts = [
            start
            for stream in self.streams
            if (read is None or stream["index"] in read) and (start := _number(stream.get("start_time"))) is not None
        ]
        return min(starts, default=self.began)

    def stamped(self, seek: float = 0.0, *, lasts: float | None = None) -> tuple[str, ...]:
        """Return the file as an input of ffmpeg, from a time on and for so many seconds, in which frames and samples keep their
        time stamps: those are `start` more than times here."""
        raised = self.start - self.origin
        limit = () if lasts is None else ("-t", seconds(lasts + raised))
        moved = ("-itsoffset", seconds(raised)) if raised else ()
        sought = ("-ss", seconds(self.origin - self.began + seek)) if seek > 0 else ()
        return (*limit, "-copyts", *sought, *moved, *self._as_it_is)

    @property
    def _as_it_is(self) -> tuple[str, ...]:
        return (*_LIMITS, "-i", f"file:{self.path}")

    @cached_property
    def videos(self) -> tuple[VideoTrack, ...]:
        """The video tracks, without pictures that are attached to sound."""
        tracks = tuple(
            VideoTrack(
                _integer(stream, "index"),
                _integer(stream, "width"),
                _integer(stream, "height"),
                _integer(stream, "bit_rate"),
                _language(stream),
            )
            for stream in self.streams
            if is_picture(stream)
        )
        if any(max(track.width, track.height) > LARGEST_SIDE for track in tracks):
            raise Unusable(f"The picture of {self.name} has more than {LARGEST_SIDE} pixels on a side.")
        return tracks

    @cached_property
    def audios(self) -> tuple[AudioTrack, ...]:
        return tuple(
            AudioTrack(_integer(stream, "index"), _integer(stream, "bit_rate"), _language(stream))
            for stream in self._streams("audio")
        )

    def _streams(self, kind: str) -> list[dict[str, Any]]:
        return [stream for stream in self.streams if stream.get("codec_type") == kind]

    @cached_property
    def streams(self) -> tuple[dict[str, Any], ...]:
        """The tracks of the programme, as ffprobe shows them."""
        streams = [stream for stream in _objects(self.probed.get("streams")) if isinstance(stream.get("index"), int)]
        chosen = self.chosen
        return tuple(stream for stream in streams if chosen is None or stream["index"] in chosen.tracks)

    @cached_property
    def programmes(self) -> tuple[StreamProgramme, ...]:
        """The programmes of a transport stream, in its order. Files of one programme need not state it."""
        return programmes_of(self.probed)

    @cached_property
    def chosen(self) -> StreamProgramme | None:
        """The programme that is read; None if the file has no programmes."""
        if not self.programmes and self.programme is None:
            return None
        if self.programme is not None:
            matches = [programme for programme in self.programmes if programme.number == self.programme]
            if not matches:
                there = ", ".join(programme.described for programme in self.programmes) or "none"
                raise Unusable(f"{self.name} has no programme {self.programme}; there is {there}.")
            return matches[0]
        return highest_programme(self.probed)

    @property
    def video(self) -> VideoTrack:
        """The highest video track."""
        if not self.videos:
            raise Unusable(f"{self.name} has no video track.")
        return max(self.videos, key=VideoTrack.rank)

    @property
    def is_mp4(self) -> bool:
        """True if the file is MP4 or of its family. Its demuxer finds the key frame of each time; others may begin with another
        one."""
        return "mp4" in self.formats

    @property
    def formats(self) -> Sequence[str]:
        """The names of its container in ffmpeg."""
        return str(_object(self.probed.get("format")).get("format_name")).split(",")

    @property
    def began(self) -> float:
        """The first time stamp of all tracks, according to the container."""
        return _number(_object(self.probed.get("format")).get("start_time")) or 0.0

    @property
    def start(self) -> float:
        """The time stamp of `stamped` from which times count. Time stamps are negative before a clock restarts, and pictures with
        negative ones are not passed on between filters, so they are raised."""
        wraps = self.began < 0 and not _DISCONTINUOUS.isdisjoint(self.formats)
        return self.origin + (ceil(-self.began) if wraps else 0)

    @cached_property
    def origin(self) -> float:
        """The time stamp in the file from which times count: that of the first picture that a decoder shows, less `early`. A
        recording may begin with pictures that cannot be decoded."""
        if not self.videos:
            return self.began
        quiet = ("-hide_banner", "-nostdin", "-nostats", "-copyts")
        first = ("-map", f"0:{self.video.index}", "-frames:v", "1", "-vf", "showinfo=checksum=0", "-fps_mode", "passthrough")
        ended = self.programs.run("ffmpeg", *quiet, *self._as_it_is, *first, "-f", "null", "-", seconds=SECONDS)
        shown = _SHOWN.search(ended.errors.decode(errors="replace"))
        if shown is None:
            if ended.status != 0:
                raise Unusable(complaint(ended, self.path, name=self.name, program="ffmpeg"), final=ended.status > 0)
            raise Unusable(f"No picture of {self.name} can be decoded.")
        return round(float(shown[1]) - self.early, 6)

    def frame(self, at: float, *, what: str) -> Frame:
        """Return the frame that is shown at a time: the last one that begins up to then. A time past the end fails; `what` names
        the time."""
        return self._frame_at(self._frames((at,)), at, what=what)

    def frames(self, first: float, last: float, *, what: tuple[str, str]) -> tuple[Frame, Frame]:
        """Return the frames at two times with one search. The later one is judged first."""
        frames = self._frames((first, last))
        later = self._frame_at(frames, last, what=what[1])
        return self._frame_at(frames, first, what=what[0]), later

    def _frame_at(self, frames: Sequence[_Times], at: float, *, what: str) -> Frame:
        shown = [index for index, (time, *_) in enumerate(frames) if time <= at + _HALF]
        if not shown:
            raise Unusable(f"{self.name} has no picture at {what}.")
        index = shown[-1]
        time, lasts, _, decoded = frames[index]
        before = frames[index - 1][0] if index else None
        if not lasts and before is not None:  # not every container says how long its last frame lasts
            lasts = time - before
        after = frames[index + 1][0] if index + 1 < len(frames) else time + lasts
        if at > after + _HALF:
            raise Unusable(self._past_end(what))
        keys = [(key_time, when) for key_time, _, key, when in frames[: index + 1] if key]
        return Frame(time, before, after, *(keys[-1] if keys else (time, decoded)))

    def _frames(self, times: Sequence[float]) -> list[_Times]:
        """Return the frames around these ascending times, in the order in which they are shown."""
        around = [(at - _AROUND, at + _AROUND) for at in times]
        packets = self.packets(*(around if around[0][1] < around[-1][0] else [(around[0][0], around[-1][1])]))
        frames = {_times_of(packet) for packet in packets if packet.shown}  # two intervals may begin at the same key frame
        last = max(frames, default=None)
        if last is None or last[0] + last[1] > times[-1] + _HALF or not _DISCONTINUOUS.isdisjoint(self.formats):
            return sorted(frames)
        return self._with_frozen_end(frames, times[-1])

    def _with_frozen_end(self, frames: set[_Times], at: float) -> list[_Times]:
        """Search for the next frame of a picture that is frozen until the end of the file. The last frame is shown until the sound
        ends."""
        sorted_frames = sorted(frames | {_times_of(packet) for packet in self.packets((max(at, 0.0), inf)) if packet.shown})
        time, lasts, key, decoded = sorted_frames[-1]
        ends = max((until for track in self._streams("audio") if (until := self.track_times(track)[1]) is not None), default=0.0)
        if time <= at + _HALF and ends - (time + lasts) > _STANDS:
            sorted_frames[-1] = (time, ends - time, key, decoded)
        return sorted_frames

    def track_times(self, stream: Mapping[str, Any]) -> tuple[float | None, float | None]:
        """Return the begin and the end of a track, according to its own header. Only the headers of MP4 and Matroska state the
        length of each track."""
        begins = _number(stream.get("start_time"))
        if begins is None:
            return None, None
        if self.is_mp4:
            length = _number(stream.get("duration"))
            most = _number(_object(self.probed.get("format")).get("duration")) or 0.0
            ends = None if length is None else min(begins + length, self.began + most) if most else begins + length
        else:
            tags = {name.lower(): value for name, value in _object(stream.get("tags")).items()}
            clock = _CLOCK.fullmatch(str(tags.get("duration", "")))
            ends = None if clock is None else int(clock[1]) * 3600 + int(clock[2]) * 60 + float(clock[3])
        return begins - self.origin, None if ends is None else ends - self.origin

    def _past_end(self, what: str) -> str:
        """Explain why there is no frame at a time: after a jump of the clock none can be looked up."""
        if not _DISCONTINUOUS.isdisjoint(self.formats) and (clock_jumps := jumps(self)):
            at, jump = clock_jumps[0]
            return (
                f"The clock of {self.name} jumps by {jump:.1f} s at {at:.1f} s, and what is after that cannot be looked up. A "
                "film that vod_ingest makes from it can be used instead."
            )
        return f"{what} is past the end of {self.name}."

    def packets(self, *intervals: tuple[float, float]) -> list[FramePacket]:
        """Return the packets of the video in each interval, from the key frame before it, in the order in which they are decoded.
        The intervals are ascending and do not overlap; the last one may be endless."""
        entries = "packet=pts_time,dts_time,duration_time,flags"
        show = ("-select_streams", str(self.video.index), "-show_entries", entries, "-of", "json")
        read = ("-read_intervals", ",".join(self._interval(begin, end) for begin, end in intervals))
        packets = _objects(_probe(self.programs, self.path, *show, *read, name=self.name).get("packets"))
        return [self._packet(packet, time) for packet in packets if (time := _number(packet.get("pts_time"))) is not None]

    def _packet(self, fields: dict[str, Any], time: float) -> FramePacket:
        at, flags, decoded = time - self.origin, str(fields.get("flags")), _number(fields.get("dts_time"))
        return FramePacket(
            at=at,
            lasts=_number(fields.get("duration_time")) or 0.0,
            key="K" in flags,
            shown="D" not in flags and at >= -_HALF,
            decoded=at if decoded is None else decoded - self.origin,
        )

    def last_of(self, tracks: Sequence[int], *, near: float) -> float:
        """Return the end of the last packet of these tracks, among those that begin shortly before a time or later."""
        last = 0.0
        for index in tracks:
            show = ("-select_streams", str(index), "-show_entries", "packet=pts_time,duration_time", "-of", "json")
            read = ("-read_intervals", f"{seconds(max(self.origin + near - _BEFORE_END, 0.0))}%")
            for packet in _objects(_probe(self.programs, self.path, *show, *read, name=self.name).get("packets")):
                time = _number(packet.get("pts_time"))
                if time is not None:
                    last = max(last, time + (_number(packet.get("duration_time")) or 0.0) - self.origin)
        return last

    def _interval(self, begin: float, end: float) -> str:
        first = min(self.began, 0.0)  # a seek to the start may miss frames of an edit list
        since = seconds(max(self.origin + begin, first)) if begin > 0 else ""
        return f"{since}%{'' if end == inf else seconds(self.origin + end)}"


def _times_of(packet: FramePacket) -> _Times:
    return packet.at, packet.lasts, packet.key, packet.decoded


def probe_at(
    programs: Programs, path: Path, *, name: str, show: tuple[str, ...] = ALL_OF_IT, programme: int | None = None
) -> ProbedFile:
    """Probe a file. `name` replaces its path, which may not be shown. An unreadable file fails permanently, with the reason."""
    if not path.is_file():
        raise Unusable(f"There is no file {name}.")
    return ProbedFile(programs, path, name, _probe(programs, path, *show, "-of", "json", name=name), programme)


def jumps(file: ProbedFile) -> list[tuple[float, float]]:
    """Return the times at which the clock of the picture jumps, in seconds without the jumps, and the size of each jump. The whole
    file is read."""
    show = ("-select_streams", str(file.video.index), "-show_entries", "packet=dts_time,duration_time", "-of", "csv=p=0")
    ended = file.programs.run("ffprobe", "-v", "error", *_LIMITS, *show, "-i", f"file:{file.path}", seconds=_LONG)
    clock_jumps: list[tuple[float, float]] = []
    before, moved = None, 0.0
    for line in ended.output.decode(errors="replace").splitlines():
        time, lasts = (_number(text) for text in (*line.split(","), "", "")[:2])
        if time is None:
            continue
        if before is not None and abs(jump := time - before) > _JUMP:
            clock_jumps.append((before - moved - file.origin, jump))
            moved += jump
        before = time + (lasts or 0.0)
    return clock_jumps


def complaint(ended: ProgramResult, path: Path, *, name: str, program: str) -> str:
    """Return the last line of its errors, without paths of this machine."""
    lines = [line for line in ended.errors.decode(errors="replace").splitlines() if line.strip()]
    last = lines[-1] if lines else f"it ended with status {ended.status}"
    return f"{program}: {last.replace(f'file:{path}', name).replace(str(path), name)}"


def seconds(time: float) -> str:
    """Format a time for ffmpeg."""
    return f"{time:.6f}"


def _probe(programs: Programs, path: Path, *arguments: str, name: str) -> dict[str, Any]:
    ended = programs.run("ffprobe", "-v", "error", *_LIMITS, *arguments, "-i", f"file:{path}", seconds=SECONDS)
    if b"whitelist" in ended.errors:
        raise Unusable(f"{name} is of a format that is not read.")
    if ended.status != 0:
        raise Unusable(complaint(ended, path, name=name, program="ffprobe"), final=ended.status > 0)
    try:
        document = json.loads(ended.output)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise Unusable("ffprobe did not answer in JSON, or with too much of it.")
    return document


def programmes_of(probed: Mapping[str, Any]) -> tuple[StreamProgramme, ...]:
    """Return the programmes of a transport stream, in its order, from the output of ffprobe."""
    return tuple(
        StreamProgramme(
            _integer(programme, "program_num"),
            str(_object(programme.get("tags")).get("service_name", "")),
            frozenset(_integer(stream, "index") for stream in _objects(programme.get("streams"))),
        )
        for programme in _objects(probed.get("programs"))
    )


def highest_programme(probed: Mapping[str, Any]) -> StreamProgramme | None:
    """Return the programme with the highest picture; None if there are no programmes."""
    ranks = {_integer(stream, "index"): rank_of(stream) for stream in _objects(probed.get("streams")) if is_picture(stream)}
    return max(
        programmes_of(probed),
        key=lambda programme: max((ranks[index] for index in programme.tracks if index in ranks), default=(-1, -1)),
        default=None,
    )


def _objects(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def is_picture(stream: Mapping[str, Any]) -> bool:
    """Return True if the stream is a picture that is not attached to sound."""
    return stream.get("codec_type") == "video" and not _object(stream.get("disposition")).get("attached_pic")


def rank_of(stream: Mapping[str, Any]) -> tuple[int, int]:
    """Return the sort key of a picture: the highest is that with the most pixels, then the most bits."""
    return _integer(stream, "width") * _integer(stream, "height"), _integer(stream, "bit_rate")


def _language(stream: dict[str, Any]) -> str | None:
    language = _object(stream.get("tags")).get("language")
    return language if isinstance(language, str) and language != "und" else None


def _integer(stream: Mapping[str, Any], name: str) -> int:
    value = stream.get(name)
    return int(value) if isinstance(value, int) or (isinstance(value, str) and value.isascii() and value.isdigit()) else 0


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None

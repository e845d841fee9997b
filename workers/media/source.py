"""The description of a source: its programme, its tracks, their begins and ends, and their formats.

Every step that reads media uses it: `source(file)` for a probed file (`workers.media.file.probe_at`). It comes from the headers of
the file, and costs no decoding but that of the first picture, from which all times count. Anything else is detected while the file
is read: `workers.media.changes` finds parameters that change in the middle, `workers.media.tracks` compares what was made with what
was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from re import compile as regex
from typing import Any, Final

from workers.media.colours import FILM, Colours
from workers.media.errors import Unusable
from workers.media.file import ProbedFile, StreamProgramme, VideoTrack

MOST_TRACKS: Final = 64
MOST_SOUNDS: Final = 8
LEAST_SIDE: Final = 16
MOST_PIXELS: Final = 8192 * 8192
"""The largest number of pixels of a picture, which is decoded into memory."""
_INTERLACED: Final = frozenset({"tt", "bb", "tb", "bt"})
_LANGUAGE: Final = regex(r"[a-z]{3}")
_NO_LANGUAGE: Final = frozenset({"und", "mis", "zxx"})
_LOST: Final = 0.02
_UNDECLARED: Final = frozenset({"mpegts", "mpeg", "h264", "hevc", "h261", "h263", "m4v", "mpegvideo", "vc1", "obu", "vvc"})
"""Formats that do not state their length. ffprobe estimates it from their first and last time stamps."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The picture as it is shown: turned as its track says, with square pixels. `index` is that of its stream. `begins` and `ends`
    are those of its packets according to the header of the track, None if it does not state them."""

    index: int
    codec: str
    width: int
    height: int
    rate: float
    interlaced: bool
    square: bool = True
    """True if the pixels of the track are square."""
    turned: int = 0
    """The degrees by which players must turn the picture, according to the track."""
    colours: Colours = FILM
    pixels: str = ""
    """The pixel format."""
    begins: float | None = None
    ends: float | None = None

    @property
    def lines(self) -> int:
        return min(self.width, self.height)

    @property
    def shape(self) -> float:
        return self.width / self.height


@dataclass(frozen=True, slots=True)
class Sound:
    """An audio track. `language` has the three letters of ISO 639-2, or is empty; `name` is its title. `marks` are the dispositions
    that are set, such as `default`, `comment` and `visual_impaired`. `begins` and `ends` are those in its header, None if it does
    not state them."""

    index: int
    codec: str
    channels: int
    language: str
    layout: str = ""
    rate: int = 0
    name: str = ""
    marks: frozenset[str] = frozenset()
    begins: float | None = None
    ends: float | None = None


@dataclass(frozen=True, slots=True)
class Subtitle:
    """A track of subtitles, with the fields of a sound."""

    index: int
    codec: str
    language: str
    name: str = ""
    marks: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SourceFile:
    """A described file. `lasts` is its stated length, 0 if it is unknown; `declared` is True if its headers state it, otherwise it
    is estimated. `others` are the indexes of tracks that are neither picture nor sound here. `programme` is None if the file has
    none."""

    file: ProbedFile
    picture: Picture
    sounds: tuple[Sound, ...]
    lasts: float
    subtitles: tuple[Subtitle, ...] = ()
    others: tuple[int, ...] = ()
    declared: bool = True

    @property
    def programme(self) -> StreamProgramme | None:
        return self.file.chosen

    def check_length(self, made: float) -> None:
        """Fail if the file is shorter than it says. Half a file has the headers of the whole file."""
        if self.lasts - made > max(1.0, self.lasts * _LOST):
            raise Unusable(f"{self.file.name} says that it lasts {self.lasts:.1f} s and ends after {made:.1f} s: it is incomplete.")


def source(file: ProbedFile, *, most_sounds: int = MOST_SOUNDS) -> SourceFile:
    """Describe a file. The first `most_sounds` audio tracks are used. A file that cannot be packaged fails permanently, with the
    reason. If there are several programmes, the log names the one that is read."""
    if len(streams := _objects(file.probed.get("streams", ()))) > MOST_TRACKS:
        raise Unusable(f"{file.name} has {len(streams)} tracks; at most {MOST_TRACKS} are read.")
    if file.chosen is not None and len(file.programmes) > 1:
        others = ", ".join(programme.described for programme in file.programmes if programme != file.chosen)
        file.programs.log(f"{file.name} has {len(file.programmes)} programmes: {file.chosen.described} is read, not {others}.")
    picture = picture_of(file)
    if min(picture.width, picture.height) < LEAST_SIDE:
        raise Unusable(f"The picture of {file.name} has less than {LEAST_SIDE} pixels on a side.")
    sounds = tuple(_sound(file, stream) for stream in file.streams if _is_supported(stream, "audio"))
    if len(sounds) > most_sounds:
        file.programs.log(f"{file.name} has {len(sounds)} audio tracks; the first {most_sounds} are used.")
    used = {picture.index, *(sound.index for sound in sounds[:most_sounds])}
    return SourceFile(
        file,
        picture,
        sounds[:most_sounds],
        lasts(file),
        tuple(_subtitle(stream) for stream in file.streams if _is_supported(stream, "subtitle")),
        tuple(stream["index"] for stream in file.streams if stream["index"] not in used),
        _UNDECLARED.isdisjoint(file.formats),
    )


def lasts(file: ProbedFile) -> float:
    """Return the length that a file states, in seconds."""
    return _number(_object(file.probed.get("format")).get("duration")) or 0.0


def picture_of(file: ProbedFile, track: VideoTrack | None = None) -> Picture:
    """Return the highest picture of the programme, or another one. A picture that cannot be decoded here fails permanently, with
    the reason."""
    track = track or file.video
    stream = next(stream for stream in file.streams if stream["index"] == track.index)
    width, height = track.width, track.height
    if width * height > MOST_PIXELS:
        raise Unusable(f"The picture of {file.name} has more than {MOST_PIXELS} pixels.")
    shape = _shape(stream)
    width = max(round(width * shape), 1)
    details = _objects(stream.get("side_data_list", ()))
    if any(entry.get("dv_profile") == 5 for entry in details):
        raise Unusable(f"{file.name} is in Dolby Vision profile 5, which needs a special decoder.")
    turned = next((entry["rotation"] for entry in details if isinstance(entry.get("rotation"), int)), 0)
    if turned % 180 == 90:
        width, height = height, width
    begins, ends = file.track_times(stream)
    return Picture(
        index=track.index,
        codec=str(stream.get("codec_name")),
        width=width,
        height=height,
        rate=_rate(stream),
        interlaced=stream.get("field_order") in _INTERLACED,
        square=shape == 1,
        turned=turned,
        colours=Colours.of(stream),
        pixels=_text(stream, "pix_fmt"),
        begins=begins,
        ends=ends,
    )


def _sound(file: ProbedFile, stream: Mapping[str, Any]) -> Sound:
    channels = stream.get("channels")
    begins, ends = file.track_times(stream)
    return Sound(
        index=int(stream["index"]),
        codec=str(stream.get("codec_name")),
        channels=channels if isinstance(channels, int) and channels > 0 else 2,
        language=_language(stream),
        layout=_text(stream, "channel_layout"),
        rate=int(rate) if (rate := str(stream.get("sample_rate"))).isdecimal() else 0,
        name=_name(stream),
        marks=_marks(stream),
        begins=begins,
        ends=ends,
    )


def _subtitle(stream: Mapping[str, Any]) -> Subtitle:
    return Subtitle(int(stream["index"]), str(stream.get("codec_name")), _language(stream), _name(stream), _marks(stream))


def _is_supported(stream: Mapping[str, Any], kind: str) -> bool:
    return stream.get("codec_type") == kind and stream.get("codec_name") not in (None, "unknown")


def _shape(stream: Mapping[str, Any]) -> Fraction:
    """Return the width of a pixel divided by its height. A value that would make the picture more than four times as wide, or as
    narrow, is an error of the file."""
    across, _, down = str(stream.get("sample_aspect_ratio")).partition(":")
    if not (across.isdecimal() and down.isdecimal() and int(across) and int(down)):
        return Fraction(1)
    shape = Fraction(int(across), int(down))
    return shape if Fraction(1, 4) <= shape <= 4 else Fraction(1)


def _rate(stream: Mapping[str, Any]) -> float:
    frames, _, seconds = str(stream.get("avg_frame_rate")).partition("/")
    if frames.isdecimal() and seconds.isdecimal() and int(seconds):
        return int(frames) / int(seconds)
    return 0.0


def _language(stream: Mapping[str, Any]) -> str:
    language = str(_tags(stream).get("language", "")).lower()
    return language if _LANGUAGE.fullmatch(language) and language not in _NO_LANGUAGE else ""


def _name(stream: Mapping[str, Any]) -> str:
    """Return the name that an editor gave to a track. Matroska has a title; MP4 a name, or a handler, which most programs fill with
    their own name."""
    tags = _tags(stream)
    return str(tags.get("title") or tags.get("name") or "")


def _marks(stream: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(name for name, is_set in _object(stream.get("disposition")).items() if is_set)


def _tags(stream: Mapping[str, Any]) -> dict[str, Any]:
    return {name.lower(): value for name, value in _object(stream.get("tags")).items()}


def _text(stream: Mapping[str, Any], name: str) -> str:
    value = stream.get(name)
    return value if isinstance(value, str) and value != "unknown" else ""


def _objects(value: Iterable[object]) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)]


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None

"""What a source shows and sounds like, once its headers are looked through, and what cannot be packaged of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from re import compile as regex
from typing import Any, Final

from workers.jobs.context import StepContext, StepFailed
from workers.jobs.workflows.media_file import MediaFile, probe_at
from workers.media.colours import FILM, Colours

MOST_TRACKS: Final = 64
MOST_SOUNDS: Final = 8
LEAST_SIDE: Final = 16
MOST_PIXELS: Final = 8192 * 8192
"""Of a picture: it is decoded into memory."""
_INTERLACED: Final = frozenset({"tt", "bb", "tb", "bt"})
_LANGUAGE: Final = regex(r"[a-z]{3}")
_NO_LANGUAGE: Final = frozenset({"und", "mis", "zxx"})
_LOST: Final = 0.02


@dataclass(frozen=True, slots=True)
class Picture:
    """The picture as it is shown: turned as its track says, with square pixels. `index` is that of its stream, `start` when it
    begins, in seconds from the start of the file."""

    index: int
    codec: str
    width: int
    height: int
    rate: float
    start: float
    interlaced: bool
    square: bool = True
    """Whether the pixels of its track are."""
    colours: Colours = FILM

    @property
    def lines(self) -> int:
        return min(self.width, self.height)


@dataclass(frozen=True, slots=True)
class Sound:
    """`language` has the three letters of ISO 639-2, or none."""

    index: int
    codec: str
    channels: int
    language: str


@dataclass(frozen=True)
class Source:
    """`lasts` is how long the file says that it is, 0 where it does not."""

    file: MediaFile
    picture: Picture
    sounds: tuple[Sound, ...]
    lasts: float

    def check_length(self, made: float) -> None:
        """Half a file has the headers of the whole one."""
        if self.lasts - made > max(1.0, self.lasts * _LOST):
            reason = f"{self.file.name} says that it lasts {self.lasts:.1f} s and ends after {made:.1f} s: it is not whole."
            raise StepFailed(reason, final=True)


def source(context: StepContext[Any], file: MediaFile) -> Source:
    """Fails for good for what cannot be packaged, with the reason."""
    streams = [one for one in file.probed.get("streams", ()) if isinstance(one, dict)]
    if len(streams) > MOST_TRACKS:
        raise StepFailed(f"{file.name} has {len(streams)} tracks; at most {MOST_TRACKS} are read.", final=True)
    picture = picture_of(file)
    if min(picture.width, picture.height) < LEAST_SIDE:
        raise StepFailed(f"The picture of {file.name} has less than {LEAST_SIDE} pixels on a side.", final=True)
    sounds = [_sound(one) for one in streams if one.get("codec_type") == "audio" and one.get("codec_name") not in (None, "unknown")]
    if len(sounds) > MOST_SOUNDS:
        context.log(f"{file.name} has {len(sounds)} audio tracks; the first {MOST_SOUNDS} are used.")
    return Source(file, picture, tuple(sounds[:MOST_SOUNDS]), lasts(file))


def lasts(file: MediaFile) -> float:
    """How many seconds a file says that it is."""
    return _number(_object(file.probed.get("format")).get("duration"))


def length_of(context: StepContext[Any], name: str) -> float:
    """How many seconds a file of the workspace lasts, that was made by this step."""
    return lasts(probe_at(context, context.workspace / name, name=name, show=("-show_format",)))


def picture_of(file: MediaFile) -> Picture:
    """That of its highest video track. Fails for good for what cannot be decoded here, with the reason."""
    streams = [one for one in file.probed.get("streams", ()) if isinstance(one, dict)]
    stream = next(one for one in streams if one.get("index") == file.video.index)
    width, height = file.video.width, file.video.height
    if width * height > MOST_PIXELS:
        raise StepFailed(f"The picture of {file.name} has more than {MOST_PIXELS} pixels.", final=True)
    shape = _shape(stream)
    width = max(round(width * shape), 1)
    details = [one for one in stream.get("side_data_list", ()) if isinstance(one, dict)]
    if any(one.get("dv_profile") == 5 for one in details):
        raise StepFailed(f"{file.name} is in Dolby Vision profile 5, which needs a decoder of its own.", final=True)
    if any(isinstance(one.get("rotation"), int) and one["rotation"] % 180 == 90 for one in details):
        width, height = height, width
    return Picture(
        index=file.video.index,
        codec=str(stream.get("codec_name")),
        width=width,
        height=height,
        rate=_rate(stream),
        start=max(_number(stream.get("start_time")) - file.start, 0.0),
        interlaced=stream.get("field_order") in _INTERLACED,
        square=shape == 1,
        colours=Colours.of(stream),
    )


def _sound(stream: dict[str, Any]) -> Sound:
    channels = stream.get("channels")
    language = str(_object(stream.get("tags")).get("language", "")).lower()
    known = _LANGUAGE.fullmatch(language) and language not in _NO_LANGUAGE
    return Sound(
        index=int(stream["index"]),
        codec=str(stream.get("codec_name")),
        channels=channels if isinstance(channels, int) and channels > 0 else 2,
        language=language if known else "",
    )


def _shape(stream: dict[str, Any]) -> Fraction:
    """Width of a pixel in its heights. One that would make the picture more than four times as wide, or as narrow, is an error of
    the file."""
    across, _, down = str(stream.get("sample_aspect_ratio")).partition(":")
    if not (across.isdecimal() and down.isdecimal() and int(across) and int(down)):
        return Fraction(1)
    shape = Fraction(int(across), int(down))
    return shape if Fraction(1, 4) <= shape <= 4 else Fraction(1)


def _rate(stream: dict[str, Any]) -> float:
    frames, _, seconds = str(stream.get("avg_frame_rate")).partition("/")
    if frames.isdecimal() and seconds.isdecimal() and int(seconds):
        return int(frames) / int(seconds)
    return 0.0


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float:
    try:
        return float(value) if isinstance(value, str) else 0.0
    except ValueError:
        return 0.0

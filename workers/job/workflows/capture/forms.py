"""Finds how the tracks of a recording are coded, and where that changes: at the beginning of an advertisement, or without any sign.

An MP4 file describes each track once, so a track that changes cannot be copied to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from workers.media.colours import FILM, Colours

_SQUARE: Final = frozenset({"0:1", "N/A", "None", ""})


@dataclass(frozen=True, slots=True)
class PictureForm:
    """The form of a picture. `shape` is the aspect ratio of a pixel, as ffmpeg spells it. `hdr` means high dynamic range."""

    codec: str
    profile: str
    width: int
    height: int
    pixels: str
    shape: str
    hdr: bool = False
    colours: Colours = field(default=FILM, compare=False)

    @property
    def size(self) -> tuple[int, int]:
        """The size with square pixels, in even numbers."""
        across, _, down = self.shape.partition(":")
        shape = int(across) / int(down) if across.isdigit() and down.isdigit() and int(down) else 1.0
        width = round(self.width * shape) if 1 / 4 <= shape <= 4 else self.width  # else it is an error of the stream
        return width + width % 2, self.height + self.height % 2

    def __str__(self) -> str:
        shape = "" if self.shape == "1:1" else f" with pixels of {self.shape}"
        shape += " of high dynamic range" if self.hdr else ""
        return f"{self.width}x{self.height}{shape} in {self.codec} {self.profile} {self.pixels}".replace("  ", " ")


@dataclass(frozen=True, slots=True)
class SoundForm:
    codec: str
    profile: str
    rate: int
    channels: int
    layout: str = field(default="", compare=False)

    def __str__(self) -> str:
        channels = "1 channel" if self.channels == 1 else f"{self.channels} channels"
        return f"{channels} of {self.rate} Hz in {self.codec} {self.profile}".rstrip()


Form = PictureForm | SoundForm


@dataclass(frozen=True, slots=True)
class TrackForms:
    """The form of a track of a piece from each moment on. `ends` is the end of the piece."""

    forms: tuple[tuple[float, Form], ...]
    ends: float

    def lasts(self) -> Iterator[tuple[Form, float]]:
        ends = [*(moment for moment, _ in self.forms[1:]), self.ends]
        for (moment, form), end in zip(self.forms, ends, strict=True):
            yield form, max(end - moment, 0.0)


def forms(probed: Mapping[str, Any]) -> dict[str, Form]:
    """Map `v`, `a0`, `a1` and so on to the forms of the tracks, from the output of ffprobe for the streams of a file."""
    tracks: dict[str, Form] = {}
    for stream in probed.get("streams", ()):
        profile = str(stream.get("profile", "")).replace("unknown", "")
        if stream.get("codec_type") == "video" and "v" not in tracks and stream.get("width"):
            shape = str(stream.get("sample_aspect_ratio", ""))
            tracks["v"] = PictureForm(
                codec=str(stream.get("codec_name")),
                profile=profile,
                width=int(stream["width"]),
                height=int(stream["height"]),
                pixels=str(stream.get("pix_fmt", "")),
                shape="1:1" if shape in _SQUARE else shape,
                hdr=Colours.of(stream).hdr,
                colours=Colours.of(stream),
            )
        elif stream.get("codec_type") == "audio":
            rate = str(stream.get("sample_rate", ""))
            tracks[f"a{sum(key[0] == 'a' for key in tracks)}"] = SoundForm(
                codec=str(stream.get("codec_name")),
                profile=profile,
                rate=int(rate) if rate.isdigit() else 0,
                channels=int(stream.get("channels") or 0),
                layout=str(stream.get("channel_layout", "")),
            )
    return tracks


def changes(tracks: Sequence[TrackForms]) -> list[tuple[float, Form, Form]]:
    """Return the times at which the form of a track changes, with the forms before and after."""
    line = [entry for track in tracks for entry in track.forms]
    return [(moment, before, after) for (_, before), (moment, after) in pairwise(line) if before != after]


def leading(tracks: Sequence[TrackForms]) -> Form:
    """Return the form that most of a track has."""
    seconds: dict[Form, float] = {}
    for track in tracks:
        for form, lasts in track.lasts():
            seconds[form] = seconds.get(form, 0.0) + lasts
    return max(seconds, key=lambda form: seconds[form])

"""The MP4 file of a capture, made from files that have its tracks on one line of time stamps.

Tracks are copied, unless the film is to begin at a frame that is not a key frame, or a track changes on its way: an MP4 file
describes each track once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from workers.job.context import StepContext
from workers.job.workflows.capture.forms import Form, PictureForm, SoundForm
from workers.job.workflows.encode import EVEN_SIZE, encode
from workers.media.file import ProbedFile, seconds
from workers.media.filters import LAYOUTS, fitted
from workers.media.outputs import MP4

HALF: Final = 0.0005
FRAME: Final = 0.001
_FORWARD: Final = "select='isnan(prev_selected_t)+gt(t,prev_selected_t)'"
"""Selects frames whose times rise. Where sources with other key frames adjoin, the last frames of a source may be there only
because others were predicted from them."""
_H264: Final = ("libx264", "-preset", "medium", "-crf", "18", "-pix_fmt", "yuv420p")
"""The result is visually as good as the source."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Places of the first frame, of the one before it and of the end of the last one. `dts` is when the first one is decoded."""

    first: float
    before: float | None
    dts: float
    end: float
    last: float
    moment: float
    """The time of the first frame in the recording."""

    @property
    def lasts(self) -> float:
        return self.end - self.first


@dataclass(frozen=True, slots=True)
class Made:
    """The way in which the film is made.

    `origin` is the place that has the time stamp 0 in the files. `accurate` means that all tracks are encoded again. `varying` are
    tracks that change on their way, with the form that they get; `picture` is the form of the picture, whether it changes or not,
    and `converted` are filters that its colours need.
    """

    cut: Cut
    origin: float
    accurate: bool
    copy_ts: bool
    varying: Mapping[str, Form]
    picture: PictureForm
    converted: Sequence[str]

    def options(self) -> tuple[str, ...]:
        offset = self.origin if self.copy_ts else self.origin - self.cut.first
        tracks = (*self._video(), *self._audio(), *self._varying_sounds())
        return ("-c", "copy", *tracks, "-output_ts_offset", seconds(offset))

    def _place(self, time: float) -> str:
        return seconds(time - self.origin)

    def _video(self) -> tuple[str, ...]:
        cut = self.cut
        if not (self.accurate or "v" in self.varying):
            first, dts, end = (self._place(time - HALF) for time in (cut.first, cut.dts, cut.end))
            return ("-bsf:v", f"noise=drop=lt(pts*tb\\,{first})+lt(dts*tb\\,{dts})+gte(dts*tb\\,{end})")
        # The borders are between frames, since times are rounded.
        begin = cut.first - FRAME if cut.before is None else (cut.before + cut.first) / 2
        trim = f"trim=start={self._place(begin)}:end={self._place((cut.last + cut.end) / 2)}"
        sized = picture_filters(self.picture) if "v" in self.varying else f"{EVEN_SIZE}:{self.picture.colours.film.coded}"
        filters = ",".join((trim, _FORWARD, *self.converted, sized))
        return ("-filter:v", filters, "-c:v", *_H264, "-fps_mode", "passthrough", "-enc_time_base:v", "demux")

    def _audio(self) -> tuple[str, ...]:
        if not self.accurate:
            first, end = (self._place(time - HALF) for time in (self.cut.first, self.cut.end))
            return ("-bsf:a", f"noise=drop=lt(pts*tb\\,{first})+gte(pts*tb\\,{end})")
        return ("-filter:a", self._atrim(), *_aac(""))

    def _varying_sounds(self) -> tuple[str, ...]:
        options: list[str] = []
        for name, form in self.varying.items():
            if isinstance(form, SoundForm):
                track = f":{name[1:]}"
                options += [f"-filter:a{track}", f"{sound_filter(form)},{self._atrim()}", *_aac(track)]
                options += [] if self.accurate else [f"-bsf:a{track}", "null"]
        return tuple(options)

    def _atrim(self) -> str:
        return f"atrim=start={self._place(self.cut.first)}:end={self._place(self.cut.end)}"


def write_film(context: StepContext[Any], files: Sequence[Path], *, made: Path, how: Made) -> None:
    sources = [ProbedFile(context, file, "the recording", {}) for file in files]
    inputs = [option for source in sources for option in source.input()]
    tracks = ("-map", "0:v:0", "-map", "0:a?" if len(files) == 1 else "1:a?")
    arguments = ("-copyts", *inputs, *tracks, *how.options(), *MP4, made.name)
    encode(context, sources[0], *arguments, lasts=how.cut.lasts, part=(0.2, 1.0))


def _aac(track: str) -> tuple[str, ...]:
    return (f"-c:a{track}", "aac", f"-b:a{track}", "192k")


def picture_filters(form: PictureForm) -> str:
    """Return filters that show the whole picture at one size with square pixels, between black bars if its shape differs."""
    return f"{fitted(*form.size)},scale={form.colours.film.coded}"


def sound_filter(form: SoundForm) -> str:
    """Return a filter that gives sound one rate and one layout, whatever it had before."""
    layout = form.layout or LAYOUTS.get(form.channels, "")
    return f"aformat=sample_rates={form.rate}{f':channel_layouts={layout}' if layout else ''}"

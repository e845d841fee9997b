"""The step that makes the poster and the sprite sheets: small pictures of all parts of a film, with their times as WebVTT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, Final

from workers.job.context import StepContext, StepFailed, StepResult
from workers.job.workflows.encode import encode
from workers.job.workflows.vod.parameters import PackageParameters
from workers.media.colours import JPEG
from workers.media.file import ProbedFile, probe_at
from workers.media.filters import KEY_SECONDS
from workers.media.outputs import jpeg
from workers.media.packet_list import listed_packets

POSTER: Final = "thumbnail.jpg"
SPRITES: Final = "sprites.vtt"
_WIDEST_POSTER: Final = 1280
_SIDE: Final = 160
_ACROSS: Final = 10
_ON_SHEET: Final = _ACROSS * _ACROSS
_USUAL: Final = 100
_MOST: Final = 2_000
_LONGEST_STEP: Final = 10
_QUALITY: Final = 3
"""The quality of the JPEG files, on the scale of ffmpeg."""
_TIMES: Final = "times.txt"


def make_thumbnails(context: StepContext[PackageParameters]) -> StepResult:
    made: Mapping[str, Any] = context.results["renditions"]
    duration = float(made["duration"])
    _poster(context, _rendition(context, made["videos"][0]), made["videos"][0], duration)
    times, sheets = _sprites(context, _rendition(context, made["videos"][-1]), made["videos"][-1], duration)
    names = [POSTER, *(f"sprites-{number}.jpg" for number in range(1, sheets.count + 1)), SPRITES]
    (context.workspace / SPRITES).write_text(sheets.webvtt(times, duration))
    for name in names:
        context.keep(context.workspace / name, name)
    return StepResult(message=f"{len(times)} small pictures", metadata={"files": names})


@dataclass(frozen=True, slots=True)
class Sheets:
    """The layout of the sprite sheets. `width` and `height` are those of one small picture."""

    pictures: int
    width: int
    height: int

    @property
    def columns(self) -> int:
        return min(_ACROSS, ceil(sqrt(self.pictures)))

    @property
    def rows(self) -> int:
        return ceil(min(self.pictures, _ON_SHEET) / self.columns)

    @property
    def count(self) -> int:
        return ceil(self.pictures / (self.columns * self.rows))

    def webvtt(self, times: Sequence[float], duration: float) -> str:
        """Return the times as WebVTT of the W3C; players read the area of a sheet from the fragment of its address."""
        cues = ["WEBVTT\n"]
        ends = [*times[1:], max(duration, times[-1] + 0.001)]
        for place, (begin, end) in enumerate(zip([0.0, *times[1:]], ends, strict=True)):
            sheet, on_sheet = divmod(place, self.columns * self.rows)
            row, column = divmod(on_sheet, self.columns)
            area = f"{column * self.width},{row * self.height},{self.width},{self.height}"
            cues.append(f"{_clock(begin)} --> {_clock(end)}\nsprites-{sheet + 1}.jpg#xywh={area}\n")
        return "\n".join(cues)


def _rendition(context: StepContext[Any], video: Mapping[str, Any]) -> ProbedFile:
    name = str(video["file"])
    return probe_at(context, context.job_file(name), name=name)


def _poster(context: StepContext[Any], file: ProbedFile, video: Mapping[str, Any], duration: float) -> None:
    """Make the poster: a typical picture after a tenth of the film, if one begins there, since the first ones are often black."""
    width = min(int(video["width"]), _WIDEST_POSTER)
    chosen = ("-vf", f"scale={width}:-2:flags=lanczos,thumbnail=50,{JPEG}", "-frames:v", "1", *jpeg(quality=_QUALITY), POSTER)
    for at in (duration / 10, 0.0):
        encode(context, file, *file.input(at), "-map", "0:v", *chosen, lasts=0.0)
        if (context.workspace / POSTER).is_file():
            return
    raise StepFailed("No picture of the film can be decoded.", final=True)


def _sprites(
    context: StepContext[Any], file: ProbedFile, video: Mapping[str, Any], duration: float
) -> tuple[Sequence[float], Sheets]:
    """Make the sprite sheets. Only key frames are decoded: there is one every two seconds."""
    step = KEY_SECONDS * ceil(max(min(duration / _USUAL, _LONGEST_STEP), duration / _MOST, 0.001) / KEY_SECONDS)
    select = f"select='if(gte(t+0.001,ld(0)),st(0,(floor((t+0.001)/{step})+1)*{step}),0)'"
    keys = ("-skip_frame", "nokey", *file.input())
    listed = ("-map", "0:v", "-vf", f"{select},scale=2:2", "-fps_mode", "passthrough", "-enc_time_base", "1/1000")
    encode(context, file, *keys, *listed, "-c:v", "rawvideo", "-f", "framecrc", _TIMES, lasts=duration, part=(0.0, 0.5))
    times = [frame.at for frame in listed_packets((context.workspace / _TIMES).read_text().splitlines())]
    if not times:
        raise StepFailed("No picture of the film can be decoded.", final=True)
    sheets = Sheets(len(times), *_fit(int(video["width"]), int(video["height"])))
    tiled = f"{select},scale={sheets.width}:{sheets.height}:flags=area,tile={sheets.columns}x{sheets.rows},{JPEG}"
    drawn = ("-map", "0:v", "-vf", tiled, "-fps_mode", "passthrough", *jpeg(quality=_QUALITY, several=True), "sprites-%d.jpg")
    encode(context, file, *keys, *drawn, lasts=duration, part=(0.5, 1.0))
    return times, sheets


def _fit(width: int, height: int) -> tuple[int, int]:
    scale = _SIDE / max(width, height)
    return max(2 * round(width * scale / 2), 2), max(2 * round(height * scale / 2), 2)


def _clock(time: float) -> str:
    minutes, rest = divmod(round(time * 1000), 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02}.{rest % 1000:03}"

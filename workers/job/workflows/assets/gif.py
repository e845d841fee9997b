"""`asset_gif`: a clip as an animated GIF, or its first frame as a still picture, in two passes: first the palette, then the
pictures."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from workers.job.context import StepContext, StepFailed, StepResult
from workers.job.workflow import Step, Workflow
from workers.job.workflows.assets.span import ClipParameters, ClipSpan, span
from workers.job.workflows.content_file import probe
from workers.job.workflows.encode import ANY_PICTURE, encode
from workers.job.workflows.vod.codecs import still
from workers.media.file import ProbedFile
from workers.media.filters import FilteredTrack, FormedTracks
from workers.media.outputs import GIF
from workers.media.source import picture_of

MOST_FRAMES: Final = 20_000
_PALETTE: Final = ("-f", "rawvideo", "-pix_fmt", "bgra", "-s", "16x16")
"""The format of a file with the 256 colours, which is empty if there was no picture."""
_MARGIN: Final = 2.0
"""Seconds that are read after the end, since the frame that is decoded last need not be shown last."""
_Side = Annotated[float, Field(gt=0, le=8192)]


class AssetGif(ClipParameters):
    """The parameters of `asset_gif`.

    `playback_speed` 0 makes a still picture. `playback_repeats` -1 plays once, 0 for ever, and n repeats n times. With one side
    only, the other keeps the shape; sides are made even.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"content_id": "match-17", "source": "match.mp4", "start": "00:01:30", "end": "00:01:35", "name": "goal.gif"}
            ]
        }
    )

    fps: Annotated[int, Field(ge=1, le=60)] = Field(10, description="Frames per second.")
    width: _Side | None = Field(None, description="Width in pixels; with one side only the other keeps the shape.")
    height: _Side | None = Field(None, description="Height in pixels.")
    playback_speed: Annotated[float, Field(ge=0, le=100)] = Field(1.0, description="Playback speed; 0 makes a still picture.")
    playback_repeats: Annotated[int, Field(ge=-1, le=65_535)] = Field(
        0, description="-1 plays once, 0 for ever, n repeats n times."
    )


def make(context: StepContext[AssetGif]) -> StepResult:
    parameters = context.parameters
    source = probe(context, parameters.source)
    clip = span(source, parameters)
    lasts = 0.0 if parameters.playback_speed == 0 else clip.lasts / parameters.playback_speed
    if lasts * parameters.fps > MOST_FRAMES:
        raise StepFailed(f"The GIF would have more than {MOST_FRAMES} frames.", final=True)
    frames = max(round(lasts * parameters.fps), 1)
    picture = picture_of(source)
    formed = FormedTracks((FilteredTrack(f"0:{picture.index}", ",".join(still(picture)), is_picture=True),))
    shown = _picture_filters(parameters, source, clip, label=formed.label(0), frames=frames)
    read = (*ANY_PICTURE, *source.stamped(clip.first.seek, lasts=clip.end - clip.first.seek + _MARGIN))
    palette, output = context.workspace / "palette.raw", context.workspace / "clip.gif"
    colours = (*formed.options(), "-filter_complex", f"{shown},palettegen[made]", "-map", "[made]", "-frames:v", "1", *_PALETTE)
    encode(context, source, *read, *colours, palette.name, lasts=lasts, part=(0.0, 0.5))
    if not palette.stat().st_size:
        reason = f"The picture of {source.name} cannot be decoded from {parameters.start} to {parameters.end}."
        raise StepFailed(reason, final=True)
    drawn = ("-filter_complex", f"{shown}[picture];[picture][1:v]paletteuse[made]", "-map", "[made]", "-frames:v", str(frames))
    repeats = ("-loop", str(parameters.playback_repeats))
    inputs = (*read, *_PALETTE, "-i", palette.name, *formed.options())
    encode(context, source, *inputs, *drawn, *repeats, *GIF, output.name, lasts=lasts, part=(0.5, 1.0))
    context.publish(output, parameters.name)
    return StepResult(message=f"{parameters.name}: {clip.lasts:.3f} s from {clip.begin:.3f} s")


def _picture_filters(parameters: AssetGif, source: ProbedFile, clip: ClipSpan, *, label: str, frames: int) -> str:
    """Return the filters before the colours: the whole clip at the wanted speed.

    A clip that is too short for a second frame shows its first one, since the filter for the frame rate drops clips shorter than
    half a period.
    """
    cut = f"[{label}]{clip.filters(source.start)}"
    sizes = f"scale='{_side(parameters.width)}':'{_side(parameters.height)}':flags=lanczos,setsar=1"
    if parameters.width is None and parameters.height is None:
        sizes = "scale='2*ceil(iw/2)':'2*ceil(ih/2)':flags=lanczos,setsar=1"
    if frames == 1:
        return f"{cut},trim=end_frame=1,{sizes}"
    steady_graph = clip.steady("cut", "held", lines=picture_of(source).height)
    return f"{cut}[cut];{steady_graph};[held]setpts=PTS/{parameters.playback_speed:.6f},fps={parameters.fps}:start_time=0,{sizes}"


def _side(pixels: float | None) -> int:
    """Return an even side in pixels, or -2, with which ffmpeg keeps the shape."""
    return -2 if pixels is None else max(2 * round(pixels / 2), 2)


ASSET_GIF: Final = Workflow("asset_gif", AssetGif, (Step("make", make),), description="Makes an animated GIF of a part of a video.")

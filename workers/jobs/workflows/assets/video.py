"""`asset_video`: a clip as an MP4 file. Copied from the key frame before its start, or encoded again, accurate to the frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from domain.asset.track_filter import InvalidFilter, Track, track_filter
from workers.jobs.context import StepContext, StepFailed, StepResult
from workers.jobs.workflow import Step, Workflow
from workers.jobs.workflows.assets.clip_texts import clip_texts
from workers.jobs.workflows.assets.parameters import ClipParameters
from workers.jobs.workflows.assets.span import Span, span
from workers.jobs.workflows.content_file import probe
from workers.jobs.workflows.encode import ENCODED, EVEN_SIZE, SAME_TIMES, encode
from workers.media.colours import Colours
from workers.media.file import MediaFile, VideoTrack, seconds
from workers.media.outputs import MP4, language


def _readable(expression: str) -> str:
    try:
        track_filter(expression)
    except InvalidFilter as refusal:
        raise PydanticCustomError("filter", "{fault}", {"fault": str(refusal)}) from None
    return expression


class AssetVideo(ClipParameters):
    """`mezzanine`: only the highest video track and the first audio track, else all video and audio tracks. `filter` says which
    tracks there are to choose from. `copy_ts` keeps the times of the source."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"content_id": "match-17", "source": "match.mp4", "start": "00:01:30", "end": "00:01:35", "name": "goal.mp4"}
            ]
        }
    )

    mezzanine: bool = Field(False, description="Only the highest video track and the first audio track.")
    frame_accurate: bool = Field(False, description="Cut at the exact frame, which encodes; else at the key frame before it.")
    copy_ts: bool = Field(False, description="Keep the times of the source.")
    filter: Annotated[str, AfterValidator(_readable)] | None = Field(None, description="Which tracks there are to choose from.")


def make(context: StepContext[AssetVideo]) -> StepResult:
    wanted = context.parameters
    source = probe(context, wanted.source)
    clip = span(source, wanted)
    made = context.workspace / "clip.mp4"
    times = ("-copyts",) if wanted.copy_ts else ()
    videos, tracks = _tracks(source, wanted)
    cut = (source, clip)
    read, coded = (
        _accurate(*cut, videos, copy_ts=wanted.copy_ts) if wanted.frame_accurate else _copied(*cut, copy_ts=wanted.copy_ts)
    )
    begins = clip.first.at if wanted.frame_accurate else clip.first.key
    shown_at = source.start + begins if wanted.copy_ts else 0.0
    inputs, texts = clip_texts(context, wanted.source, begin=begins, end=clip.end, to=shown_at)
    arguments = (*times, *read, *inputs, *tracks, *coded, *texts, *MP4, made.name)
    encode(context, source, *arguments, lasts=clip.lasts)
    context.publish(made, wanted.name)
    return StepResult(message=f"{wanted.name}: {clip.lasts:.3f} s from {clip.first.at:.3f} s")


def _tracks(source: MediaFile, wanted: AssetVideo) -> tuple[list[VideoTrack], list[str]]:
    """The tracks of pictures, and the options that choose all tracks."""
    passes = track_filter(wanted.filter) if wanted.filter is not None else lambda track: True
    videos = [one for one in source.videos if passes(Track("video", one.bit_rate or None, one.height or None, one.language))]
    audios = [one for one in source.audios if passes(Track("audio", one.bit_rate or None, None, one.language))]
    if not videos and not audios:
        raise StepFailed(f"{source.name} has no track that the filter lets pass.", final=True)
    if wanted.mezzanine:
        videos, audios = sorted(videos, key=VideoTrack.rank)[-1:], audios[:1]
    indexes = [*(one.index for one in videos), *(one.index for one in audios)]
    spoken = [option for place, one in enumerate(audios) for option in language(one.language or "", place)]
    return videos, [*(option for index in indexes for option in ("-map", f"0:{index}")), *spoken]


def _accurate(
    source: MediaFile, clip: Span, videos: Sequence[VideoTrack], *, copy_ts: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    origin = -source.start if copy_ts else clip.first.seek
    begin = seconds(clip.first.at - origin)
    video, sound = clip.filters(origin), clip.filters(origin, audio=True)
    if not copy_ts:
        video, sound = f"{video},setpts=PTS-{begin}/TB", f"{sound},asetpts=PTS-{begin}/TB"
    pictures = [option for place, one in enumerate(videos) for option in (f"-filter:v:{place}", f"{video},{_shown(source, one)}")]
    return source.input(clip.first.seek), (*pictures, "-filter:a", sound, *ENCODED, *SAME_TIMES)


def _shown(source: MediaFile, track: VideoTrack) -> str:
    """The filters that give the picture an even size and the colours of a film."""
    colours = Colours.of(next(one for one in source.probed["streams"] if one.get("index") == track.index))
    return ",".join((*colours.converted(), f"{EVEN_SIZE}:{colours.film.coded}"))


def _copied(source: MediaFile, clip: Span, *, copy_ts: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The frames before the start stay visible: a player that ignored what says otherwise would show them."""
    if not source.is_mp4:
        name = source.name
        reason = f"A clip is copied from an MP4 file only, and {name} is none; a frame accurate clip can be made of it."
        raise StepFailed(reason, final=True)
    key = clip.first.key
    shift = () if copy_ts else ("-avoid_negative_ts", "make_zero")
    return ("-t", seconds(clip.end - key), *source.input(key)), ("-c", "copy", *shift)


ASSET_VIDEO: Final = Workflow("asset_video", AssetVideo, (Step("make", make),), description="Cuts a clip out of a video, as MP4.")

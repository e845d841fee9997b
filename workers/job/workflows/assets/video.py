"""`asset_video`: a clip as an MP4 file, copied from the key frame before its start, or encoded again with exact frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Annotated, Any, Final

import langcodes
from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from domain.asset import track_filter as filters
from domain.asset.values import CaptionKind
from workers.job.context import StepContext, StepFailed, StepResult
from workers.job.workflow import Step, Workflow
from workers.job.workflows.assets.span import ClipParameters, ClipSpan, span
from workers.job.workflows.content_file import probe
from workers.job.workflows.encode import ENCODED, encode
from workers.job.workflows.packets import change, is_heard
from workers.job.workflows.vod.codecs import film
from workers.job.workflows.vod.texts import published_texts
from workers.media.captions import webvtt
from workers.media.captions.cues import cut
from workers.media.file import AudioTrack, ProbedFile, VideoTrack, seconds
from workers.media.filters import LAYOUTS, PICTURE_TIMES, RATE, FilteredTrack, FormedTracks, channels_of, sound_form
from workers.media.outputs import MP4, language
from workers.media.source import picture_of

_DISPOSITIONS = {CaptionKind.CAPTIONS: "hearing_impaired", CaptionKind.DESCRIPTIONS: "descriptions", CaptionKind.FORCED: "forced"}


def clip_texts(
    context: StepContext[Any], source: str, *, begin: float, end: float, to: float
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return inputs of ffmpeg after the first one, and options of its output, for the texts from `begin` until before `end`.

    The times are seconds of the film, which begins at `to` in the clip. There are none if the source is not the film of the
    content.
    """
    content = context.job.content_id
    inputs: list[str] = []
    tracks: list[str] = []
    if source != f"{content}.mp4":
        return (), ()
    for text in published_texts(context, content):
        cues = cut(text.cues, begin=begin, end=end, to=to)
        if not cues:
            continue
        number = len(inputs) // 4
        file = f"text-{number}.vtt"
        (context.workspace / file).write_text(webvtt.whole(cues))
        inputs += ["-f", "webvtt", "-i", file]
        tracks += ["-map", f"{number + 1}:0", f"-metadata:s:s:{number}", f"language={langcodes.get(text.language).to_alpha3()}"]
        tracks += [
            f"-metadata:s:s:{number}",
            f"handler_name={text.name}",
            f"-disposition:s:{number}",
            _DISPOSITIONS.get(text.kind, "0"),
        ]
    return tuple(inputs), (*tracks, "-c:s", "mov_text") if tracks else ()


_HALF: Final = 0.001
"""A tolerance in seconds, less than half a frame, since times are rounded."""
_MARGIN: Final = 2.0
"""Seconds that are read after the end, since the frame that is decoded last need not be shown last."""
_Options = tuple[tuple[str, ...], tuple[str, ...]]
"""Options of the input and of the output. If those of the output move times, they move the texts too."""


def _valid_filter(expression: str) -> str:
    try:
        filters.track_filter(expression)
    except filters.InvalidFilter as refusal:
        raise PydanticCustomError("filter", "{fault}", {"fault": str(refusal)}) from None
    return expression


class AssetVideo(ClipParameters):
    """The parameters of `asset_video`.

    With `mezzanine`, the clip has only the highest video track and the first audio track, otherwise all video and audio tracks.
    `filter` selects the tracks that are available. `copy_ts` keeps the times of the source.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"content_id": "match-17", "source": "match.mp4", "start": "00:01:30", "end": "00:01:35", "name": "goal.mp4"}
            ]
        }
    )

    mezzanine: bool = Field(False, description="Only the highest video track and the first audio track.")
    frame_accurate: bool = Field(
        False, description="Cut at the exact frame, which needs encoding; otherwise at the key frame before it."
    )
    copy_ts: bool = Field(False, description="Keep the times of the source.")
    filter: Annotated[str, AfterValidator(_valid_filter)] | None = Field(
        None, description="Expression that selects the tracks that are available."
    )


@dataclass(frozen=True, slots=True)
class _Tracks:
    """The tracks of the clip."""

    videos: Sequence[VideoTrack]
    audios: Sequence[AudioTrack]

    @property
    def indexes(self) -> list[int]:
        return [*(video.index for video in self.videos), *(audio.index for audio in self.audios)]

    @property
    def maps(self) -> list[str]:
        return [option for index in self.indexes for option in ("-map", f"0:{index}")]

    @property
    def languages(self) -> list[str]:
        return [option for place, audio in enumerate(self.audios) for option in language(audio.language or "", place)]


def make(context: StepContext[AssetVideo]) -> StepResult:
    parameters = context.parameters
    source = probe(context, parameters.source)
    clip = span(source, parameters)
    output = context.workspace / "clip.mp4"
    tracks = _choose_tracks(source, parameters)
    if parameters.frame_accurate or _changes(context, source, clip):
        read, coded = _encode_options(context, source, clip, tracks, copy_ts=parameters.copy_ts)
        begins, placed = clip.begin, 0.0
    else:
        read, coded = _copy_options(source, clip, tracks, copy_ts=parameters.copy_ts)
        begins, placed = clip.first.key, source.start + clip.first.key
    inputs, texts = clip_texts(context, parameters.source, begin=begins, end=clip.end, to=placed)
    encode(context, source, *read, *inputs, *coded, *tracks.languages, *texts, *MP4, output.name, lasts=clip.lasts)
    context.publish(output, parameters.name)
    return StepResult(message=f"{parameters.name}: {clip.lasts:.3f} s from {clip.begin:.3f} s")


def _choose_tracks(source: ProbedFile, parameters: AssetVideo) -> _Tracks:
    passes = filters.track_filter(parameters.filter) if parameters.filter is not None else lambda track: True
    videos = [
        video
        for video in source.videos
        if passes(filters.AssetTrack("video", video.bit_rate or None, video.height or None, video.language))
    ]
    audios = [audio for audio in source.audios if passes(filters.AssetTrack("audio", audio.bit_rate or None, None, audio.language))]
    if not videos and not audios:
        raise StepFailed(f"{source.name} has no track that passes the filter.", final=True)
    if parameters.mezzanine:
        return _Tracks(sorted(videos, key=VideoTrack.rank)[-1:], audios[:1])
    return _Tracks(videos, audios)


def _changes(context: StepContext[AssetVideo], source: ProbedFile, clip: ClipSpan) -> bool:
    """Return True if the picture changes its form between the beginning of the file and the end of the clip."""
    at = change(context, source, codec=picture_of(source).codec, begin=clip.first.key, end=clip.end) if source.is_mp4 else None
    if at is not None:
        context.log(f"The picture of {source.name} changes at {at:.3f} s, so the clip is encoded again.")
    return at is not None


def _encode_options(context: StepContext[Any], source: ProbedFile, clip: ClipSpan, tracks: _Tracks, *, copy_ts: bool) -> _Options:
    """Return options that encode the clip again.

    Each track is brought to one form first, so that it may change. A picture that stands still is repeated, and missing sound is
    replaced by silence.
    """
    streams = {stream.get("index"): stream for stream in source.probed["streams"]}
    heard = [audio for audio in tracks.audios if is_heard(context, source, track=audio.index, begin=clip.begin, lasts=clip.lasts)]
    layouts = {audio.index: channels_of(streams[audio.index].get("channels") or 2) for audio in tracks.audios}
    shapes = [picture_of(source, video) for video in tracks.videos]
    pictures = [FilteredTrack(f"0:{shape.index}", ",".join(film(shape)), is_picture=True) for shape in shapes]
    sounds = [FilteredTrack(f"0:{audio.index}", sound_form(layouts[audio.index]), is_picture=False) for audio in heard]
    formed = FormedTracks((*pictures, *sounds))
    graphs = [
        f"[{formed.label(place)}]{clip.filters(source.start)}[cut-{place}];"
        f"{clip.steady(f'cut-{place}', f'track-{video.index}', name=f'steady-{place}', lines=2 * ceil(shown.height / 2))}"
        for place, (video, shown) in enumerate(zip(tracks.videos, shapes, strict=True))
    ]
    for audio in tracks.audios:
        if audio in heard:
            line = f"[{formed.label(len(pictures) + heard.index(audio))}]{clip.filters(source.start, audio=True)}"
        else:
            line = f"anullsrc=r={RATE}:cl={LAYOUTS[layouts[audio.index]]},atrim=end={seconds(clip.lasts)}"
        graphs.append(f"{line}[track-{audio.index}]")
    maps = [option for index in tracks.indexes for option in ("-map", f"[track-{index}]")]
    read = source.stamped(clip.first.seek, lasts=clip.end - clip.first.seek + _MARGIN)
    again = formed.options() if formed.tracks else ()
    shift = ("-output_ts_offset", seconds(clip.begin + source.origin)) if copy_ts else ()
    return read, (*again, "-filter_complex", ";".join(graphs), *maps, *ENCODED, *PICTURE_TIMES, *shift)


def _copy_options(source: ProbedFile, clip: ClipSpan, tracks: _Tracks, *, copy_ts: bool) -> _Options:
    """Return options that copy the clip. The frames before its start remain visible in players that ignore edit lists."""
    if not source.is_mp4:
        name = source.name
        reason = f"A clip is copied from an MP4 file only, and {name} is none; a frame accurate clip can be made of it."
        raise StepFailed(reason, final=True)
    first = clip.first
    begin, dts, end = (seconds(time + source.start - _HALF) for time in (first.key, first.key_decoded, clip.end))
    video = f"noise=drop=lt(pts*tb\\,{begin})+lt(dts*tb\\,{dts})+gte(dts*tb\\,{end})"
    sound = f"noise=drop=lt(pts*tb\\,{begin})+gte(pts*tb\\,{end})"
    shift = () if copy_ts else ("-output_ts_offset", seconds(-first.key - source.start))
    read = source.stamped(first.seek, lasts=clip.end - first.seek + _MARGIN)
    return read, (*tracks.maps, "-c", "copy", "-bsf:v", video, "-bsf:a", sound, *shift)


ASSET_VIDEO: Final = Workflow("asset_video", AssetVideo, (Step("make", make),), description="Cuts a clip out of a video, as MP4.")

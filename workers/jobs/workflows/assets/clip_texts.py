"""Captions of a clip: the text tracks of its film, inside the MP4 file (`mov_text`), moved to the times of the clip."""

from __future__ import annotations

from typing import Any

import langcodes

from domain.asset.values import CaptionKind
from workers.jobs.context import StepContext
from workers.jobs.workflows.vod.texts import published_texts
from workers.media.captions import webvtt
from workers.media.captions.cuts import cut

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

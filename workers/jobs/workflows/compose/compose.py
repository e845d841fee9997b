"""`compose`: turns a playlist into the MP4 file of its content, which is packaged as by `vod_package`. ADR 0066.

Four steps make the items, each a part of them, in parallel if there are free places. A step that is run again continues with the
item that it had reached.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from workers.jobs.context import StepContext, StepFailed, StepResult
from workers.jobs.workflow import Step, Workflow
from workers.jobs.workflows.compose.parameters import Compose
from workers.jobs.workflows.compose.pictures import ROOM, picture
from workers.jobs.workflows.compose.plan import SAMPLES, Plan, blocks
from workers.jobs.workflows.compose.reel import Reel
from workers.jobs.workflows.compose.sounds import sound
from workers.jobs.workflows.compose.sources import check_unchanged, plan_film, read_plan, source_of
from workers.jobs.workflows.compose.texts import composed_texts
from workers.jobs.workflows.encode import encode
from workers.jobs.workflows.vod.codecs import LAYOUTS
from workers.jobs.workflows.vod.package import PACKAGING
from workers.jobs.workflows.vod.renditions import CONVERTED, make_renditions
from workers.jobs.workflows.vod.texts import TEXTS, keep_texts
from workers.media.file import MediaFile, probe_at
from workers.media.outputs import MP4, language
from workers.media.source import Source, source

_BLOCKS: Final = 4
_MOST_PARAMETERS: Final = 524_288
"""Bytes for 1,000 items with their times, and 1,000 markers."""
_LIST: Final = "item-list"


def make_items(context: StepContext[Compose], *, block: int) -> StepResult:
    """Make the items of this block, one after another. The source of each must be unchanged since it was examined, before and after
    it."""
    plan = read_plan(context)
    numbers = [number for number in blocks(plan, _BLOCKS)[block] if plan.items[number].frames]
    film, sounds = _film(block), [_sound(plan, block, track) for track in range(len(plan.tracks.channels))]
    reel, sources = Reel(context, (film, *sounds)), dict[str, Source]()
    for count, number in enumerate(numbers, 1):
        if number in reel.made:
            continue
        item = plan.items[number]
        check_unchanged(context, item.part)
        if item.part.source not in sources:
            sources[item.part.source] = source(source_of(context, item.part.source))
        media = sources[item.part.source]
        shown, copied = picture(context, plan, item=item, media=media)
        pieces = {
            film: shown,
            **{name: sound(context, plan, item=item, file=media.file, track=track) for track, name in enumerate(sounds)},
        }
        check_unchanged(context, item.part)
        reel.add(number, pieces, note={"copied": copied})
        context.progress(count / len(numbers), f"item {number + 1} of {len(plan.items)}")
    if numbers:
        for name in (film, *sounds):
            context.keep(reel.path(name), name)
    again = sum(plan.items[number].copied and not reel.made[number]["copied"] for number in numbers)
    return StepResult(message=f"{len(numbers)} items", metadata={"items": len(numbers), "again": again})


def join(context: StepContext[Compose]) -> StepResult:
    """Join the items of the blocks into the film. Breaks and key frames are noted for the packages."""
    plan, planned = read_plan(context), context.results["sources"]
    used = [block for block in range(_BLOCKS) if context.results[_step(block)]["items"]]
    again = sum(context.results[_step(block)]["again"] for block in used)
    lasts = plan.time(plan.frames)
    film = MediaFile(context, context.workspace / _LIST, "the film", {})
    inputs = ["-itsoffset", f"-{ROOM}", "-f", "mpegts", *_concat_input(context, [_film(block) for block in used])]
    tracks = ["-map", "0:v:0", "-c:v", "copy", "-bsf:v", f"{_clean(plan, again)},{_times(plan)}", *_tag(plan, again)]
    for track, spoken in enumerate(plan.tracks.languages):
        inputs += [*_kind(plan, track), *_concat_input(context, [_sound(plan, block, track) for block in used])]
        tracks += ["-map", f"{track + 1}:a:0", *_sound_codec(plan, track), *language(spoken, track)]
    made = (*MP4, "-video_track_timescale", str(_scale(plan)), CONVERTED)
    encode(context, film, "-copyts", *inputs, *tracks, *made, lasts=lasts)
    _check(context, plan)
    context.keep(context.workspace / CONVERTED, CONVERTED)
    texts = keep_texts(context, composed_texts(context, plan))
    return StepResult(
        message=f"Composed {lasts:.3f} s of {len(plan.items)} items",
        metadata={"duration": round(lasts, 3), "breaks": planned["breaks"], "keys": planned["keys"], TEXTS: texts},
    )


def _check(context: StepContext[Any], plan: Plan) -> None:
    probed = probe_at(context, context.workspace / CONVERTED, name="the film").probed
    frames = next((stream.get("nb_frames") for stream in probed["streams"] if stream.get("codec_type") == "video"), None)
    if frames != str(plan.frames):
        raise StepFailed(f"The film has {frames} frames where it should have {plan.frames}.")


def _times(plan: Plan) -> str:
    """Return the filter that puts every frame on the grid of the film, and decodes it as early as any of the sources needs."""
    rate, frame = f"{plan.rate[0]}/{plan.rate[1]}", f"{plan.rate[1]}/{plan.rate[0]}/TB"
    return f"setts=pts=round(round(PTS*TB*{rate})*{frame}):dts=round((N-{plan.reorder})*{frame}):duration=round({frame})"


def _clean(plan: Plan, again: int) -> str:
    """Return the filter that removes what MPEG-TS has before each frame, and headers that the file states once."""
    single_header = plan.one_header and not again
    kinds = {"h264": "7-9" if single_header else "9", "hevc": "32-35" if single_header else "35"}
    return f"filter_units=remove_types={kinds[plan.codec]}"


def _scale(plan: Plan) -> int:
    """Return the ticks in a second with which a frame has a whole number of them."""
    return plan.rate[0] * max(1, -(-10_000 // plan.rate[0]))


def _tag(plan: Plan, again: int) -> Sequence[str]:
    """Return the tag of the codec. The file states headers once, unless they change in it. Players of Apple know only one name of
    HEVC."""
    if plan.codec == "hevc":
        return ("-tag:v", "hvc1")
    return () if plan.one_header and not again else ("-tag:v", "avc3")


def _kind(plan: Plan, track: int) -> Sequence[str]:
    if plan.tracks.copied:
        return ("-f", "aac")
    return ("-f", "s16le", "-ar", str(SAMPLES), "-ch_layout", LAYOUTS[plan.tracks.channels[track]][0])


def _sound_codec(plan: Plan, track: int) -> Sequence[str]:
    if plan.tracks.copied:
        return (f"-c:a:{track}", "copy")
    return (f"-c:a:{track}", "aac", f"-b:a:{track}", LAYOUTS[plan.tracks.channels[track]][1])


def _concat_input(context: StepContext[Any], names: Sequence[str]) -> Sequence[str]:
    """Return files of earlier steps as one input.

    Their paths are relative to the workspace, since the path of the media root may contain the separator.
    """
    paths = "|".join(os.path.relpath(context.job_file(name), context.workspace.resolve()) for name in names)
    return ("-protocol_whitelist", "concat,file", "-i", f"concat:{paths}")


def _film(block: int) -> str:
    return f"film-{block + 1}.ts"


def _sound(plan: Plan, block: int, track: int) -> str:
    return f"sound-{block + 1}-{track + 1}.{'aac' if plan.tracks.copied else 'pcm'}"


def _step(block: int) -> str:
    return f"items_{block + 1}"


COMPOSE: Final = Workflow(
    "compose",
    Compose,
    (
        Step("sources", plan_film),
        *(Step(_step(block), partial(make_items, block=block), after=("sources",)) for block in range(_BLOCKS)),
        Step("join", join, after=("sources", *map(_step, range(_BLOCKS)))),
        Step("renditions", make_renditions, after=("join",)),
        *PACKAGING,
    ),
    _MOST_PARAMETERS,
    submitted_by="composition",
    description="Makes one film from the films of a playlist and packages it for HLS and DASH.",
)

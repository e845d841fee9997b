"""`compose`: turns a playlist into the MP4 file of its content, which is packaged as by `vod_package`. ADR 0066.

Four steps make the items, each a part of them, in parallel if there are free places. A step that is run again continues with the
item that it had reached.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any, Final

from domain.asset.values import CaptionKind
from domain.job.values import Severity
from workers.job.context import StepContext, StepFailed, StepResult
from workers.job.workflow import Step, Workflow
from workers.job.workflows.compose.parameters import Compose
from workers.job.workflows.compose.plan import SAMPLES, FilmPlan, PlannedItem, blocks
from workers.job.workflows.compose.reel import Reel
from workers.job.workflows.compose.sounds import reading, sound
from workers.job.workflows.compose.sources import check_unchanged, plan_film, read_plan, source_of
from workers.job.workflows.encode import encode
from workers.job.workflows.vod.codecs import LAYOUTS, h264, progressive_sdr
from workers.job.workflows.vod.package import PACKAGING
from workers.job.workflows.vod.renditions import CONVERTED, make_renditions
from workers.job.workflows.vod.texts import TEXTS, FilmTextTrack, keep_texts, published_texts
from workers.media.captions.cues import Cue, cut
from workers.media.file import SECONDS, ProbedFile, probe_at, seconds
from workers.media.filters import FilteredTrack, FormedTracks, fitted
from workers.media.outputs import CLEAN, MP4, language
from workers.media.source import SourceFile, source

ROOM: Final = 10.0
"""The time stamp of the first frame: those of MPEG-TS are not negative, and decoding begins earlier."""
_TS: Final = ("-muxdelay", "0", "-muxpreload", "0", "-mpegts_flags", "+initial_discontinuity", "-f", "mpegts")
_PIECE: Final = "picture.ts"
_BEFORE_KEY: Final = 0.01
_MARGIN: Final = 2.0
_HALF: Final = 0.002
"""A tolerance in seconds, less than half a frame, since times are rounded."""
_BIT_RATE: Final = 40_000_000
_QUALITY: Final = 17


def picture(context: StepContext[Any], plan: FilmPlan, *, item: PlannedItem, media: SourceFile) -> tuple[Path, bool]:
    """Make the picture of an item, and return its file and True if it was copied.

    A copy whose number of frames differs from what its source states is not used.
    """
    if item.copied:
        piece = _copy_picture(context, plan, item=item, media=media)
        if _frames(context, piece) == item.frames:
            return piece, True
        context.log(f"{media.file.name} does not have a constant frame rate; it is encoded again.", Severity.WARN)
    piece = _encode_picture(context, plan, item=item, media=media)
    if (frames := _frames(context, piece)) != item.frames:
        begin, lacks = item.begin, plan.time(item.frames - frames)
        lost = f"from {begin + plan.time(frames):.3f} s to {begin + plan.time(frames) + lacks:.3f} s"
        raise StepFailed(f"The picture of {media.file.name} cannot be decoded {lost}.", final=True)
    return piece, False


def _copy_picture(context: StepContext[Any], plan: FilmPlan, *, item: PlannedItem, media: SourceFile) -> Path:
    """Copy the shown part of an item. In a film with several headers, each piece states its colours."""
    file, part = media.file, item.part
    begin, end = (seconds(time + file.start - _HALF) for time in (part.begin, part.end))
    seek = max(part.begin - _BEFORE_KEY, 0.0)
    inputs = (*file.stamped(seek, lasts=part.end - seek + _MARGIN), "-map", f"0:{media.picture.index}")
    named = "" if plan.one_header or media.picture.colours.named else f",{plan.film.h264_names}"
    copied = ("-c", "copy", "-bsf:v", f"noise=drop=lt(pts*tb\\,{begin})+gte(pts*tb\\,{end}){named}")
    offset = seconds(ROOM + plan.time(item.first) - part.begin - file.start)
    encode(context, file, *inputs, *copied, "-output_ts_offset", offset, *_TS, _PIECE, lasts=0.0)
    return context.workspace / _PIECE


def _encode_picture(context: StepContext[Any], plan: FilmPlan, *, item: PlannedItem, media: SourceFile) -> Path:
    """Encode the whole picture in the size of the film, with bars if its shape differs, on the frame grid of the film."""
    file, begin, after = media.file, item.begin, item.part.end if item.copied else item.part.after
    form = (*progressive_sdr(media.picture), fitted(plan.width, plan.height, coded=plan.film.coded))
    formed = FormedTracks((FilteredTrack(f"0:{media.picture.index}", ",".join(form), is_picture=True),))
    first = begin - item.part.stood
    cut = f"trim=start={seconds(first + file.start - _HALF)}:end={seconds(after + file.start - _HALF)}"
    slowest = max(Fraction(*item.part.shown.rate), Fraction(1))
    spare = ceil(Fraction(*plan.rate) * (Fraction(item.part.stands) + 1 / slowest)) + 1
    moved, last = f"PTS-{seconds(begin + file.start)}/TB", ""
    if item.part.stood:  # its first frame is from before the item, and the end of the last one, N, may be, too
        moved, last = f"max({moved}\\,N)", ":eof_action=pass"
    grid = f"fps={plan.rate[0]}/{plan.rate[1]}:start_time=0{last},tpad=stop={spare}:stop_mode=clone"
    filters = f"[{formed.label(0)}]{cut},setpts={moved},{grid}[made]"
    coded = h264(min(plan.width, plan.height), bit_rate=_BIT_RATE, quality=_QUALITY)
    place = ("-output_ts_offset", seconds(ROOM + plan.time(item.first)))
    output = ("-filter_complex", filters, "-map", "[made]", "-frames:v", str(item.frames), *coded, *CLEAN, *place)
    inputs = reading(file, begin=first, lasts=after - first)
    encode(context, file, *inputs, *formed.options(), *output, *_TS, _PIECE, lasts=0.0)
    return context.workspace / _PIECE


def _frames(context: StepContext[Any], piece: Path) -> int:
    """Count the frames of a piece that was just made. Its format is given, since a very short stream looks like one of another
    format."""
    if not piece.is_file():
        return 0
    counted = ("-count_packets", "-select_streams", "v:0", "-show_entries", "stream=nb_read_packets", "-of", "csv=p=0")
    ended = context.run("ffprobe", "-v", "error", *counted, "-f", "mpegts", "-i", f"file:{piece}", seconds=SECONDS)
    words = ended.output.split()
    return int(words[0]) if words and words[0].isdigit() else 0


_Key = tuple[str, CaptionKind, int]


def composed_texts(context: StepContext[Any], plan: FilmPlan) -> list[FilmTextTrack]:
    """Join the texts of the items, in the order in which the film has them first.

    An item with two tracks of a language and kind has two in the film.
    """
    numbered: dict[str, list[tuple[_Key, FilmTextTrack]]] = {}
    names: dict[_Key, str] = {}
    joined: dict[_Key, list[Cue]] = {}
    for item in plan.items:
        source = item.part.source
        if source not in numbered:
            numbered[source] = _number_texts(published_texts(context, source))
        for key, text in numbered[source]:
            names.setdefault(key, text.name)
            begin = item.begin
            cues = cut(text.cues, begin=begin, end=begin + plan.time(item.frames), to=plan.time(item.first))
            joined.setdefault(key, []).extend(cues)
    return [FilmTextTrack(key[0], key[1], names[key], cues) for key, cues in joined.items() if cues]


def _number_texts(texts: list[FilmTextTrack]) -> list[tuple[_Key, FilmTextTrack]]:
    count: dict[tuple[str, CaptionKind], int] = {}
    numbered = []
    for text in texts:
        number = count[text.language, text.kind] = count.get((text.language, text.kind), 0) + 1
        numbered.append(((text.language, text.kind, number), text))
    return numbered


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
    reel, sources = Reel(context, (film, *sounds)), dict[str, SourceFile]()
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
    film = ProbedFile(context, context.workspace / _LIST, "the film", {})
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


def _check(context: StepContext[Any], plan: FilmPlan) -> None:
    probed = probe_at(context, context.workspace / CONVERTED, name="the film").probed
    frames = next((stream.get("nb_frames") for stream in probed["streams"] if stream.get("codec_type") == "video"), None)
    if frames != str(plan.frames):
        raise StepFailed(f"The film has {frames} frames where it should have {plan.frames}.")


def _times(plan: FilmPlan) -> str:
    """Return the filter that puts every frame on the grid of the film, and decodes it as early as any of the sources needs."""
    rate, frame = f"{plan.rate[0]}/{plan.rate[1]}", f"{plan.rate[1]}/{plan.rate[0]}/TB"
    return f"setts=pts=round(round(PTS*TB*{rate})*{frame}):dts=round((N-{plan.reorder})*{frame}):duration=round({frame})"


def _clean(plan: FilmPlan, again: int) -> str:
    """Return the filter that removes what MPEG-TS has before each frame, and headers that the file states once."""
    single_header = plan.one_header and not again
    kinds = {"h264": "7-9" if single_header else "9", "hevc": "32-35" if single_header else "35"}
    return f"filter_units=remove_types={kinds[plan.codec]}"


def _scale(plan: FilmPlan) -> int:
    """Return the ticks in a second with which a frame has a whole number of them."""
    return plan.rate[0] * max(1, -(-10_000 // plan.rate[0]))


def _tag(plan: FilmPlan, again: int) -> Sequence[str]:
    """Return the tag of the codec. The file states headers once, unless they change in it. Players of Apple know only one name of
    HEVC."""
    if plan.codec == "hevc":
        return ("-tag:v", "hvc1")
    return () if plan.one_header and not again else ("-tag:v", "avc3")


def _kind(plan: FilmPlan, track: int) -> Sequence[str]:
    if plan.tracks.copied:
        return ("-f", "aac")
    return ("-f", "s16le", "-ar", str(SAMPLES), "-ch_layout", LAYOUTS[plan.tracks.channels[track]][0])


def _sound_codec(plan: FilmPlan, track: int) -> Sequence[str]:
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


def _sound(plan: FilmPlan, block: int, track: int) -> str:
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

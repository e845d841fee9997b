"""The picture of one item, as MPEG-TS: such streams are joined by their bytes, and each key frame has its headers before it."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any, Final

from domain.job.values import Severity
from workers.jobs.context import StepContext, StepFailed
from workers.jobs.workflows.compose.loudness import reading
from workers.jobs.workflows.compose.plan import Plan, PlannedItem
from workers.jobs.workflows.encode import encode
from workers.jobs.workflows.vod.codecs import h264, progressive_sdr
from workers.media.file import SECONDS, seconds
from workers.media.filters import FormedTracks, Track, fitted
from workers.media.outputs import CLEAN
from workers.media.source import Source

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


def picture(context: StepContext[Any], plan: Plan, *, item: PlannedItem, media: Source) -> tuple[Path, bool]:
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


def _copy_picture(context: StepContext[Any], plan: Plan, *, item: PlannedItem, media: Source) -> Path:
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


def _encode_picture(context: StepContext[Any], plan: Plan, *, item: PlannedItem, media: Source) -> Path:
    """Encode the whole picture in the size of the film, with bars if its shape differs, on the frame grid of the film."""
    file, begin, after = media.file, item.begin, item.part.end if item.copied else item.part.after
    form = (*progressive_sdr(media.picture), fitted(plan.width, plan.height, coded=plan.film.coded))
    formed = FormedTracks((Track(f"0:{media.picture.index}", ",".join(form), is_picture=True),))
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

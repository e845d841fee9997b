"""Questions about a track that its packets answer without decoding: does its picture change, and is there sound?

A picture of another size, shape or pixel format comes with other parameter sets of the codec. A track that is copied has one
description in MP4. Frames after a change cannot be played from there, or by some players only, so such a part is not copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from workers.job.context import StepContext, StepFailed
from workers.job.workflows.encode import LONGEST
from workers.media.file import ProbedFile, complaint, seconds
from workers.media.packet_list import PacketList, listed_packets

_UNITS: Final = {"h264": ("h264_mp4toannexb", "7-8"), "hevc": ("hevc_mp4toannexb", "32-34")}
"""The filter that puts parameter sets before each key frame, and their types."""
_ROUNDED: Final = 0.001
_AT_ONCE: Final = 10.0
"""Seconds."""


def change(context: StepContext[Any], file: ProbedFile, *, codec: str, begin: float, end: float) -> float | None:
    """Return the first time, between two times, at which the highest picture has other parameter sets than its track begins with.

    None if they stay the same, or if the codec is not examined.
    """
    if codec not in _UNITS:
        return None
    first: list[str] = []
    changes: list[float] = []

    def compare(at: float, sets: str) -> None:
        if sets != first[0] and at < end - _ROUNDED and not changes:
            changes.append(max(at, begin))

    _read(context, file, codec, file.input(), ("-frames:v", "1"), lambda _, sets: first.append(sets))
    if first:
        _read(context, file, codec, file.stamped(begin, lasts=end - begin), (), compare)
    return changes[0] if changes else None


def is_heard(context: StepContext[Any], file: ProbedFile, *, track: int, begin: float, lasts: float) -> bool:
    """Return True if a track of sound, by the index of its stream, has packets in an interval.

    The beginning of the interval is read first, since nearly every track has packets there.
    """
    return _heard(context, file, track, begin, min(lasts, _AT_ONCE)) or _heard(context, file, track, begin, lasts)


def _heard(context: StepContext[Any], file: ProbedFile, track: int, begin: float, lasts: float) -> bool:
    """Return True if packets follow the time. The first packets may be from before it: they follow a key frame of the picture."""
    copied = ("-map", f"0:{track}", "-c", "copy", "-f", "framecrc", "-")
    ended = context.run("ffmpeg", "-v", "error", "-nostdin", "-t", seconds(lasts), *file.input(begin), *copied, seconds=LONGEST)
    return any(packet.at >= 0 for packet in listed_packets(ended.output.decode().splitlines()))


def _read(
    context: StepContext[Any],
    file: ProbedFile,
    codec: str,
    inputs: tuple[str, ...],
    limit: tuple[str, ...],
    report: Callable[[float, str], None],
) -> None:
    """Report the time of each key frame, and a digest of the parameter sets before it."""
    bitstream_filter, types = _UNITS[codec]
    reader = PacketList()

    def follow(line: str) -> bool:
        if (packet := reader.packet(line)) is not None:
            report(packet.at - file.start, packet.digest)
        return True

    copied = (
        "-map",
        f"0:{file.video.index}",
        "-c",
        "copy",
        "-bsf:v",
        f"{bitstream_filter},filter_units=pass_types={types}",
        *limit,
    )
    arguments = ("-v", "error", "-nostdin", *inputs, *copied, "-f", "framehash", "-hash", "md5", "-")
    ended = context.run("ffmpeg", *arguments, seconds=LONGEST, on_line=follow)
    if ended.status != 0:
        raise StepFailed(complaint(ended, file.path, name=file.name, program="ffmpeg"), final=ended.status > 0)

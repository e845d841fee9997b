"""A run of ffmpeg: its progress is shown, and a run that makes no progress is ended."""

from __future__ import annotations

from shutil import disk_usage
from typing import Any, Final

from workers.job.context import StepContext, StepFailed
from workers.job.programs import Ended
from workers.media.file import ProbedFile, complaint

LONGEST: Final = 12 * 3600.0
STALLED: Final = 120.0
"""Seconds without a new frame or a new byte after which a run is ended."""
_QUIET: Final = ("-hide_banner", "-nostdin", "-nostats", "-v", "error", "-progress", "pipe:1", "-y")
_THREADS: Final = ("-filter_threads", "4", "-filter_complex_threads", "4", "-threads", "4")
"""The threads of filters, and of the decoder of the first input. More threads hold more pictures, and the memory of a process is
limited."""
_NO_SPACE: Final = 1_048_576
_MOVES: Final = frozenset({"frame", "out_time_us", "total_size"})

ENCODED: Final = ("-c:v", "libx264", "-preset", "medium", "-crf", "18", "-pix_fmt", "yuv420p", "-c:a", "aac", "-b:a", "192k")
"""The codecs of clips that are cut to the frame: visually as good as the source."""
EVEN_SIZE: Final = "scale='2*ceil(iw/2)':'2*ceil(ih/2)'"
"""A filter that makes both sides even: H.264 has no odd sizes in this pixel format."""
ANY_PICTURE: Final = ("-max_error_rate", "1")
"""Makes ffmpeg use everything that can be decoded, however much is damaged. The step examines the result."""
SAME_TIMES: Final = ("-fps_mode", "passthrough", "-enc_time_base", "demux")
"""Frames keep the times that they have in the source."""


def encode(
    context: StepContext[Any], source: ProbedFile, *arguments: str, lasts: float, part: tuple[float, float] = (0.0, 1.0)
) -> Ended:
    """Run ffmpeg, and return its end. Raises `StepFailed`, for good if ffmpeg refuses the input.

    `arguments` hold the input of the source and the output, a file of the workspace. `lasts` is the length of the output in
    seconds, `part` the share of the step's progress that this run takes, from where to where.
    """
    begin, end = part
    seen: dict[str, str] = {}

    def follow(line: str) -> bool:
        name, _, value = line.strip().partition("=")
        if name == "out_time_us" and value.lstrip("-").isdigit() and lasts > 0:
            done = min(max(int(value) / 1_000_000 / lasts, 0.0), 1.0)
            context.progress(begin + (end - begin) * done)
        moved = name in _MOVES and seen.get(name) != value
        seen[name] = value
        return moved

    ended = context.run("ffmpeg", *_QUIET, *_THREADS, *arguments, seconds=LONGEST, stall=STALLED, on_line=follow)
    if ended.status != 0:
        fail_for_space(context)
        raise StepFailed(complaint(ended, source.path, name=source.name, program="ffmpeg"), final=ended.status > 0)
    return ended


def fail_for_space(context: StepContext[Any]) -> None:
    """Raise `StepFailed` if the disk is full, after a program failed.

    Programs report a full disk in many ways, and it may have space again at the next attempt.
    """
    if disk_usage(context.workspace).free < _NO_SPACE:
        raise StepFailed("The disk is full.")

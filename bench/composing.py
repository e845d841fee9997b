"""The time until a playlist's film exists as an MP4 file, compared with one ffmpeg command that makes the same, in turns."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import uvloop

from bench.ground import Ground, in_turns
from bench.report import Result, Table, middle
from tests.support.packages import run
from tests.support.sources.playlists import event, item, playlist
from workers.adapters.ffmpeg import find
from workers.job.protocol import StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.confinement import NICE

_SECONDS = 5
_ITEMS = 10
_ALIKE, _OTHER = (1, 2, 3), 4
_SIZE = (640, 360)
_JOINED = "join"
_CODED = ("-c:v", "libx264", "-preset", "fast", "-crf", "17", "-pix_fmt", "yuv420p", "-c:a", "aac", "-b:a", "160k")


def composing(ground: Ground) -> Result:
    """(aa) films of ten items that agree, and of ten of which one is of another size."""
    root = ground.home / "composing"
    for number in (*_ALIKE, _OTHER):
        _source(root, number)
    agree = [_ALIKE[place % len(_ALIKE)] for place in range(_ITEMS)]
    differ = [*agree[:-1], _OTHER]
    cells: dict[str, Callable[[], float]] = {
        "agree": partial(_composed, root, agree),
        "agree, by hand": partial(_by_hand, root, _list(root, agree)),
        "one differs": partial(_composed, root, differ),
        "one differs, by hand": partial(_by_hand, root, _filtered(root, differ)),
    }
    seen = in_turns(cells, rounds=ground.effort.rounds)
    title = f"(aa) Films of {_ITEMS} items of {_SECONDS} s in {_SIZE[0]} x {_SIZE[1]}, until the MP4 file"
    table = Table(title, ("", "composed s", "by hand s", "ratio"))
    for name in ("agree", "one differs"):
        ours, hand = seen[name], seen[f"{name}, by hand"]
        table.add(name, middle(ours), middle(hand), middle([run / base for run, base in zip(ours, hand, strict=True)]))
    return Result("composing", [table], raw={"load": os.getloadavg(), "seconds": seen})


def _source(root: Path, number: int) -> None:
    path = _path(root, number)
    path.parent.mkdir(parents=True)
    width, height = _SIZE if number != _OTHER else (480, 360)
    picture = ("-f", "lavfi", "-i", f"testsrc2=size={width}x{height}:rate=25:duration={_SECONDS}")
    sound = ("-f", "lavfi", "-i", f"sine=frequency={200 * number}:duration={_SECONDS}:sample_rate=48000", "-ac", "2")
    coded = ("-c:v", "libx264", "-preset", "veryfast", "-g", "50", "-pix_fmt", "yuv420p", "-c:a", "aac")
    subprocess.run([str(find("ffmpeg")), "-v", "error", *picture, *sound, *coded, path], check=True)


def _path(root: Path, number: int) -> Path:
    return root / event(number) / f"{event(number)}.mp4"


def _composed(root: Path, numbers: Sequence[int]) -> float:
    """Run the steps of the workflow, one after another, in processes that are already started. Return the seconds until the film
    is joined."""
    ends: list[float] = []

    async def play() -> float:
        hosts = StepProcessPool(media_root=root, allow=[])
        await hosts.start()
        try:
            await run(hosts, root, "probe_media", content_id=event(1), file=f"{event(1)}.mp4")
            begun = time.perf_counter()
            given = playlist(*map(item, numbers))
            joined = {_JOINED: lambda: ends.append(time.perf_counter())}
            made = await run(hosts, root, "compose", generation=1, playlist=given, renditions=[16], after=joined)
            if isinstance(made, StepFailure):
                raise RuntimeError(made.reason)
            return ends[-1] - begun
        finally:
            await hosts.stop()

    return uvloop.run(play())


def _by_hand(root: Path, arguments: Sequence[str]) -> float:
    """Run ffmpeg with the priority of steps, and return its seconds."""
    begun = time.perf_counter()
    made = root / "by-hand.mp4"
    command = [str(shutil.which("nice")), "-n", str(NICE), str(find("ffmpeg")), "-v", "error", "-y", *arguments]
    subprocess.run([*command, "-movflags", "+faststart", str(made)], check=True)
    return time.perf_counter() - begun


def _list(root: Path, numbers: Sequence[int]) -> Sequence[str]:
    """Return the arguments for the concat demuxer, which copies."""
    listed = root / "list.txt"
    listed.write_text("".join(f"file '{_path(root, number)}'\n" for number in numbers))
    return ("-f", "concat", "-safe", "0", "-i", str(listed), "-c", "copy")


def _filtered(root: Path, numbers: Sequence[int]) -> Sequence[str]:
    """Return the arguments for the concat filter, which decodes and encodes everything and ignores loudness."""
    width, height = _SIZE
    inputs = [option for number in numbers for option in ("-i", str(_path(root, number)))]
    fitted = f"scale={width}:{height}:force_original_aspect_ratio=decrease,pad={width}:{height}:(ow-iw)/2:(oh-ih)/2,setsar=1,fps=25"
    shown = "".join(f"[{place}:v]{fitted}[v{place}];" for place in range(len(numbers)))
    pairs = "".join(f"[v{place}][{place}:a]" for place in range(len(numbers)))
    joined = f"{shown}{pairs}concat=n={len(numbers)}:v=1:a=1[v][a]"
    return (*inputs, "-filter_complex", joined, "-map", "[v]", "-map", "[a]", *_CODED)

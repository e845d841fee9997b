"""The source films of the demo: a few seconds of patterns that ffmpeg computes, each with another look."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Final

from api.cli.demo.schedule import FILM_LENGTH
from api.wiring.startup import StartError
from workers.adapters.ffmpeg import find
from workers.kernel.media_programs import missing

LOOKS: Final = (
    "gradients=s=640x360:r=25:d={length}:seed={seed}:speed=0.03:nb_colors=6",
    "gradients=s=640x360:r=25:d={length}:seed={seed}:speed=0.02:type=spiral:nb_colors=3",
    "life=s=160x90:r=25:seed={seed}:ratio=0.3:mold=10:life_color=white:death_color=#204060:mold_color=#0a1520,scale=640:360:flags=neighbor",
    "pal75bars=s=640x360:r=25:d={length},hue=h=t*40",
)


async def make_film(target: Path, *, look: int, seed: int) -> None:
    """Make a film with ffmpeg. Raise `StartError` with the last line of its output if it fails."""
    program = find("ffmpeg")
    if program is None:
        raise StartError(f"{missing('ffmpeg')} The demo has no films without it.")
    picture = LOOKS[look % len(LOOKS)].format(length=FILM_LENGTH, seed=seed + look)
    tone = f"sine=frequency={220 + 110 * look}:duration={FILM_LENGTH}"
    command = [
        *("-hide_banner", "-loglevel", "error", "-y", "-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", tone),
        *("-t", str(FILM_LENGTH), "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "50"),
        *("-c:a", "aac", "-b:a", "64k", "-threads", "1", str(target)),
    ]
    process = await asyncio.create_subprocess_exec(str(program), *command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
    _, errors = await process.communicate()
    if process.returncode:
        lines = errors.decode(errors="replace").strip().splitlines() or ["no reason was given"]
        raise StartError(f"ffmpeg could not make a film of the demo: {lines[-1]}")

"""Films whose frames show their numbers: the test draws each as a raw picture, with the bits of the number as black and white
blocks that any encoding keeps, and pipes it into ffmpeg."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from workers.adapters.ffmpeg import find

WIDTH, HEIGHT, BITS = 128, 96, 8
_BLOCK = WIDTH // BITS


def tool(name: str) -> str:
    path = find(name)
    assert path is not None
    return str(path)


def picture(number: int) -> bytes:
    """Return a grey picture with the bits of the number from left to right."""
    row = b"".join((b"\xf0" if number >> bit & 1 else b"\x10") * _BLOCK for bit in range(BITS))
    return row * HEIGHT


def film(path: Path, *options: str, frames: int = 100, fps: str = "25", inputs: tuple[str, ...] = (), first: int = 0) -> None:
    """Make a film whose frames have the numbers from `first`."""
    raw = ("-f", "rawvideo", "-pix_fmt", "gray", "-s", f"{WIDTH}x{HEIGHT}", "-r", fps, "-i", "pipe:0")
    command = [
        tool("ffmpeg"),
        "-v",
        "error",
        "-y",
        *raw,
        *inputs,
        *(options or ("-c:v", "libx264", "-g", "30", "-sc_threshold", "0", "-pix_fmt", "yuv420p")),
        *(("-aac_coder", "fast") if "aac" in options else ()),
        str(path),
    ]
    subprocess.run(command, input=b"".join(map(picture, range(first, first + frames))), check=True)


def numbers(path: Path | str, *, stream: str = "0:v:0", turned: str = "") -> list[int]:
    """Return the numbers that the decoded frames of a file or a URL show. `turned` are filters that turn them back."""
    shown = (
        "-map",
        stream,
        "-fps_mode",
        "passthrough",
        "-vf",
        f"{turned}scale={WIDTH}:{HEIGHT}:flags=area,format=gray",
        "-f",
        "rawvideo",
        "-",
    )
    raw = subprocess.run([tool("ffmpeg"), "-v", "error", "-i", str(path), *shown], stdout=subprocess.PIPE, check=True).stdout
    size = WIDTH * HEIGHT
    return [_number(raw[at : at + size]) for at in range(0, len(raw), size)]


def probed(path: Path, *show: str) -> dict[str, Any]:
    asked = [tool("ffprobe"), "-v", "error", *(show or ("-show_format", "-show_streams")), "-of", "json", str(path)]
    probe: dict[str, Any] = json.loads(subprocess.run(asked, stdout=subprocess.PIPE, check=True).stdout)
    return probe


def _number(frame: bytes) -> int:
    middle = HEIGHT // 2 * WIDTH
    return sum((frame[middle + bit * _BLOCK + _BLOCK // 2] > 128) << bit for bit in range(BITS))

"""Playlists for tests: sources whose frames show their numbers, and measurements of a film that was made from them."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path
from re import findall
from typing import Any
from uuid import UUID

from tests.support.sources.numbered_frames import film, probed, tool

FRAMES = 100
H264 = ("-c:v", "libx264", "-preset", "veryfast", "-g", "30", "-sc_threshold", "0", "-bf", "2", "-pix_fmt", "yuv420p")


def event(number: int) -> str:
    return str(UUID(int=number))


def source(
    root: Path, number: int, *options: str, frames: int = FRAMES, fps: str = "25", decibels: float | None = -5.0, hertz: int = 440
) -> Path:
    """Make the film of an Event. Without `decibels` it has no sound."""
    path = root / event(number) / f"{event(number)}.mp4"
    path.parent.mkdir(parents=True)
    coded = options or H264
    if decibels is None:
        film(path, *coded, frames=frames, fps=fps)
        return path
    seconds = frames / float(fps)
    tone = ("-f", "lavfi", "-i", f"sine=frequency={hertz}:duration={seconds}:sample_rate=48000")
    mixed = ("-filter_complex", f"[1:a]volume={decibels}dB,aformat=channel_layouts=stereo[a]", "-map", "0:v", "-map", "[a]")
    film(path, *mixed, *coded, "-c:a", "aac", frames=frames, fps=fps, inputs=tone)
    return path


def item(number: int, *markers: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return {"type": 0, "value": event(number), "properties": properties, "markers": list(markers)}


def playlist(*items: dict[str, Any]) -> dict[str, Any]:
    return {"name": "Evening", "looped": False, "items": list(items)}


def lufs(path: Path, begin: float, seconds: float) -> float:
    """Return the integrated loudness between two times, by EBU R 128."""
    asked = [tool("ffmpeg"), "-hide_banner", "-nostats", "-ss", str(begin), "-t", str(seconds), "-i", str(path)]
    asked += ["-vn", "-af", "ebur128=framelog=quiet", "-f", "null", "-"]
    output = subprocess.run(asked, capture_output=True, text=True, check=True).stderr
    return float(findall(r"I:\s+(-?[\d.]+) LUFS", output)[-1])


def gaps(path: Path, stream: str) -> list[float]:
    """Return the distinct distances between the time stamps of a track, in order of size."""
    packets = probed(path, "-select_streams", stream, "-show_entries", "packet=pts_time")["packets"]
    times = sorted(float(packet["pts_time"]) for packet in packets)
    return sorted({round(b - a, 4) for a, b in pairwise(times)})


def digests(path: Path, stream: str) -> list[str]:
    """Return the digests of the packets of a track."""
    shown = ("-select_streams", stream, "-show_data_hash", "sha256", "-show_entries", "packet=data_hash")
    return [packet["data_hash"] for packet in probed(path, *shown)["packets"]]


def keys(path: Path) -> list[float]:
    packets = probed(path, "-select_streams", "v:0", "-show_entries", "packet=pts_time,flags")["packets"]
    return sorted(float(packet["pts_time"]) for packet in packets if "K" in packet["flags"])

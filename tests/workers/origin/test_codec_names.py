"""The names of codecs in playlists and manifests are those that Shaka Packager uses for the same tracks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from workers.adapters.ffmpeg import find
from workers.media.fragments import read_init

PICTURE, SOUND = ("-map", "0:v"), ("-map", "1:a")
FRAGMENTS = ("-t", "0.6", "-movflags", "+delay_moov+frag_every_frame+default_base_moof", "-f", "mp4")
X264 = (*PICTURE, "-c:v", "libx264", "-preset", "ultrafast")
TRACKS = {
    "baseline": (*X264, "-profile:v", "baseline"),
    "high-422": (*X264, "-pix_fmt", "yuv422p10le"),
    "hevc": (*PICTURE, "-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none", "-tag:v", "hvc1"),
    "av1": (*PICTURE, "-c:v", "libsvtav1", "-preset", "13", "-pix_fmt", "yuv420p10le"),
    "vp9": (*PICTURE, "-c:v", "libvpx-vp9", "-deadline", "realtime"),
    **{name: (*SOUND, "-c:a", name) for name in ("aac", "ac3", "eac3", "flac", "libopus")},
}


def run(program: str, *arguments: str, folder: Path) -> None:
    record = find(program)
    assert record is not None
    done = subprocess.run([record, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


def test_names_of_codecs_are_those_of_another_packager(tmp_path: Path) -> None:
    """VP9 may be named with or without its colours; FLAC is `fLaC` in files and for Apple, and players accept both."""
    inputs = ("-f", "lavfi", "-i", "testsrc2=size=160x96:rate=5", "-f", "lavfi", "-i", "sine=sample_rate=48000")
    outputs = [argument for name, track in TRACKS.items() for argument in (*track, *FRAGMENTS, f"{name}.mp4")]
    run("ffmpeg", "-hide_banner", "-loglevel", "error", *inputs, *outputs, folder=tmp_path)
    streams = [
        f"in={name}.mp4,stream={'video' if track[:2] == PICTURE else 'audio'},init_segment={name}/i.mp4,"
        f"segment_template={name}/$Number$.m4s"
        for name, track in TRACKS.items()
    ]
    run("packager", *streams, "--mpd_output", "all.mpd", folder=tmp_path)
    files = [(tmp_path / f"{name}.mp4").read_bytes() for name in TRACKS]
    ours = {read_init(file[: file.index(b"moof") - 4]).codecs for file in files}
    theirs = set(re.findall(r'codecs="([^"]+)"', (tmp_path / "all.mpd").read_text()))
    assert len(ours) == len(TRACKS)
    assert ours == {"fLaC" if name == "flac" else _short(name) for name in theirs}


def _short(name: str) -> str:
    return ".".join(name.split(".")[:4]) if name.startswith("vp09") else name

"""Encoders that push to the built-in origin: real ffmpeg, with a film whose frames show their numbers."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.sources.numbered_frames import film, tool

FRAMES = 200
"""The number of frames of the film: eight seconds, with a key frame each second."""
_TONE = ("-f", "lavfi", "-i", "sine=frequency=1000:d=8")
_CODED = ("-c:v", "libx264", "-g", "25", "-sc_threshold", "0", "-pix_fmt", "yuv420p", "-c:a", "aac", "-shortest")
LIMIT = 120.0
_HLS = ("-f", "hls", "-hls_time", "1", "-hls_list_size", "4", "-hls_flags", "delete_segments+program_date_time")
FMP4 = (*_HLS, "-hls_segment_type", "fmp4")
TS = (*_HLS, "-hls_segment_type", "mpegts")
CMAF = ("-f", "mp4", "-movflags", "cmaf+frag_keyframe+delay_moov")


def make_film(path: Path) -> Path:
    film(path, "-map", "0:v", "-map", "1:a", *_CODED, frames=FRAMES, inputs=_TONE)
    return path


class Encoder:
    """A process of ffmpeg. `outputs` are its arguments after the input, each list with a URL at its end."""

    def __init__(self, source: Path, *outputs: Sequence[str], token: str, rate: float = 4, loops: int = 0) -> None:
        read = ["-readrate", str(rate), "-stream_loop", str(loops)]
        command = [tool("ffmpeg"), "-nostdin", "-v", "warning", *read, "-i", str(source)]
        for output in outputs:
            *options, url = output
            method = "POST" if "/Streams(" in url else "PUT"
            command += [*options, "-method", method, "-headers", f"Authorization: Bearer {token}\r\n", url]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def ended(self) -> int:
        """Wait until it ends without being asked, and return its exit code."""
        self.errors = self.process.communicate(timeout=LIMIT)[1]
        return self.process.returncode

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=LIMIT)


def copied(*streams: str) -> list[str]:
    return [part for stream in streams for part in ("-map", stream)] + ["-c", "copy"]


def two_renditions(url: str) -> list[str]:
    """Video in two sizes, with separate audio."""
    coded = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-sc_threshold", "0", "-pix_fmt", "yuv420p", "-c:a", "aac"]
    sizes = ["-filter:v:1", "scale=64:48"]
    named = "v:0,agroup:a,name:high v:1,agroup:a,name:low a:0,agroup:a,language:deu,name:sound"
    maps = ["-map", "0:v", "-map", "0:v", "-map", "0:a"]
    return [*maps, *coded, *sizes, *FMP4, "-master_pl_name", "master.m3u8", "-var_stream_map", named, f"{url}/%v/index.m3u8"]

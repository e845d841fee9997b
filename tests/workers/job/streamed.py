"""Streams for tests, made by ffmpeg from a film whose frames show their numbers: HLS of both containers, and DASH."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support.sources.numbered_frames import film, tool

FRAMES = 200
BEGAN = datetime(2026, 1, 1, 12, tzinfo=UTC)
"""The time of day of the first frame. A segment lasts a second, and has 25 frames."""
_TONE = ("-f", "lavfi", "-i", "aevalsrc='0.5*mod(floor(t),2)*sin(2*PI*1000*t)':s=44100:d=8")
"""A tone that sounds in every other second."""
SYNC = 0.06
"""Seconds by which sound may deviate from the picture: two packets of audio, and the window in which a tone is searched for."""
_RATE, _WINDOW = 8000, 80
_CODED = ("-c:v", "libx264", "-g", "25", "-sc_threshold", "0", "-bf", "2", "-pix_fmt", "yuv420p", "-c:a", "aac", "-shortest")
_OTHER = ("-c:v", "libx264", "-g", "100", "-force_key_frames", "expr:eq(mod(n,25),13)", "-sc_threshold", "0", "-c:a", "aac")
"""The options of another encoder, whose segments begin 13 frames later."""
WRAPS = 2**33 / 90_000
"""Seconds after which time stamps of MPEG-TS begin again."""


class Streamed:
    """Holds `film` in a folder, cut into segments in several ways."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        film(folder / "film.mp4", "-map", "0:v", "-map", "1:a", *_CODED, frames=FRAMES, inputs=_TONE)
        self._made("ts", "-f", "hls", *_hls("ts"), "i.m3u8")
        self._made("fmp4", "-f", "hls", "-hls_segment_type", "fmp4", *_hls("m4s"), "i.m3u8")
        self._made("other", "-f", "hls", *_hls("ts"), "i.m3u8", coded=_OTHER)
        self._made("larger", "-f", "hls", *_hls("ts"), "i.m3u8", coded=(*_OTHER, "-s", "160x120", "-ar", "48000"))
        self._made("wrapped", "-f", "hls", "-output_ts_offset", str(WRAPS - 6.4), *_hls("ts"), "i.m3u8")
        self._made("dash", "-f", "dash", "-seg_duration", "1", "-use_timeline", "1", "i.mpd")

    def _made(self, name: str, *arguments: str, coded: Sequence[str] = ("-c", "copy")) -> None:
        (self.folder / name).mkdir()
        command = [tool("ffmpeg"), "-v", "error", "-i", str(self.folder / "film.mp4"), *coded, *arguments]
        subprocess.run(command, cwd=self.folder / name, check=True)

    def files(self, name: str) -> dict[str, bytes]:
        """Return the files of one way of cutting, by their paths at an origin."""
        return {f"{name}/{file.name}": file.read_bytes() for file in (self.folder / name).iterdir()}


def _hls(extension: str) -> Sequence[str]:
    return ("-hls_time", "1", "-hls_list_size", "0", "-hls_segment_filename", f"s%d.{extension}")


def playlist(
    segments: Sequence[int],
    *,
    extension: str = "ts",
    ended: bool = True,
    sequence: int | None = None,
    began: datetime | None = BEGAN,
    init: str | None = None,
    target: float = 1,
    tags: Mapping[int, str] | None = None,
) -> bytes:
    """Return a media playlist of these segments of a second each. `tags` are lines before a segment."""
    lines = ["#EXTM3U", f"#EXT-X-TARGETDURATION:{target:g}"]
    lines.append(f"#EXT-X-MEDIA-SEQUENCE:{segments[0] if sequence is None and segments else sequence or 0}")
    lines += [f'#EXT-X-MAP:URI="{init}"'] if init else []
    for number in segments:
        lines += [tags[number]] if tags and number in tags else []
        if began is not None:
            lines.append(f"#EXT-X-PROGRAM-DATE-TIME:{(began + timedelta(seconds=number)).isoformat()}")
        lines += ["#EXTINF:1.0,", f"s{number}.{extension}"]
    return "\n".join([*lines, *(["#EXT-X-ENDLIST"] if ended else [])]).encode()


def heard(path: Path) -> list[float]:
    """Return the times at which the tone begins or ends, in seconds after the first frame is shown.

    The end of the file does not count, since audio may be shorter than video by a packet there.
    """
    even = ("-af", "aresample=async=8000:min_hard_comp=0.02:first_pts=0", "-ac", "1", "-ar", str(_RATE), "-f", "s16le", "-")
    raw = subprocess.run([tool("ffmpeg"), "-v", "error", "-i", str(path), *even], stdout=subprocess.PIPE, check=True).stdout
    samples = [abs(int.from_bytes(raw[at : at + 2], "little", signed=True)) for at in range(0, len(raw) - 1, 2)]
    loud = [max(samples[at : at + _WINDOW]) > 4000 for at in range(0, len(samples), _WINDOW)]
    return [number * _WINDOW / _RATE for number in range(1, len(loud) - 15) if loud[number] != loud[number - 1]]


def moment(seconds: float) -> str:
    """Return the time of day so many seconds after the first frame."""
    return (BEGAN + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")

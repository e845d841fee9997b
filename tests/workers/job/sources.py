"""Sources as they come from elsewhere: ffmpeg makes each from a film whose frames show their numbers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.sources.numbered_frames import film, tool

FRAMES = 75
TONE = ("-f", "lavfi", "-i", "sine=frequency=440:duration=3:sample_rate=48000")
H264 = ("-c:v", "libx264", "-preset", "veryfast", "-g", "30", "-sc_threshold", "0", "-bf", "2", "-pix_fmt", "yuv420p")
BOTH = ("-map", "0:v", "-map", "1:a", "-shortest")
HDR = "log-level=none:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc"
WRAP = 2**33 / 90_000
"""Seconds after which the clock of a transport stream begins again."""


@dataclass(frozen=True)
class Foreign:
    """A source and its expected result: the number of `sounds`, the `size` of the largest rendition, and the frame numbers."""

    file: str
    make: Callable[[Path], None]
    sounds: int = 1
    size: tuple[int, int] = (128, 96)
    numbers: tuple[int, ...] = tuple(range(FRAMES))
    turned: str = ""
    """Filters that turn its frames back."""


def _film(*options: str, inputs: tuple[str, ...] = TONE) -> Callable[[Path], None]:
    return lambda path: film(path, *options, frames=FRAMES, inputs=inputs)


def ffmpeg(*arguments: str) -> None:
    subprocess.run([tool("ffmpeg"), "-v", "error", "-y", *arguments], check=True)


def _rotated(path: Path) -> None:
    upright = path.with_name("upright.mp4")
    film(upright, *BOTH, *H264, "-c:a", "aac", frames=FRAMES, inputs=TONE)
    ffmpeg("-display_rotation", "90", "-i", str(upright), "-c", "copy", str(path))
    upright.unlink()


def _variable(path: Path) -> None:
    """Make a film in which every third frame is missing."""
    film(path, *BOTH, "-vf", "select=mod(n\\,3)", "-fps_mode", "vfr", *H264, "-c:a", "aac", frames=FRAMES, inputs=TONE)


def _wrapped(path: Path) -> None:
    film(path, *BOTH, *H264, "-c:a", "aac", "-output_ts_offset", f"{WRAP - 1.4 - 1.5:.3f}", frames=FRAMES, inputs=TONE)


def _trimmed(path: Path) -> None:
    """Make a film with an edit list that begins between key frames, in the middle of B-frames."""
    whole = path.with_name("whole.mp4")
    film(whole, *BOTH, *H264, "-c:a", "aac", frames=FRAMES, inputs=TONE)
    ffmpeg("-ss", "0.48", "-i", str(whole), "-c", "copy", str(path))
    whole.unlink()


def _late(path: Path) -> None:
    """Make a film whose picture begins half a second after the sound."""
    film(path, "-map", "1:a", "-map", "0:v", "-vf", "setpts=PTS+0.5/TB", *H264, "-c:a", "aac", frames=FRAMES, inputs=TONE)


def _telephone(path: Path) -> None:
    """Make a film as from a telephone: turned, of variable frame rate, trimmed, mono."""
    whole = path.with_name("whole.mp4")
    varied = ("-vf", "select=mod(n\\,3)", "-fps_mode", "vfr")
    film(whole, *BOTH, *varied, *H264, "-c:a", "aac", "-ac", "1", frames=FRAMES, inputs=TONE)
    ffmpeg("-display_rotation", "180", "-ss", "0.48", "-i", str(whole), "-c", "copy", str(path))
    whole.unlink()


def _broadcast(path: Path) -> None:
    """Make a film as from a broadcast: interlaced, with surround sound, recorded while the clock began again."""
    coded = ("-c:v", "mpeg2video", "-q:v", "2", "-flags", "+ildct+ilme", "-c:a", "ac3", "-ac", "6")
    film(path, *BOTH, *coded, "-output_ts_offset", f"{WRAP - 1.4 - 1.5:.3f}", frames=FRAMES, inputs=TONE)


RISKY: Mapping[str, Foreign] = {
    "telephone": Foreign(
        "telephone.mp4", _telephone, numbers=tuple(number for number in range(12, FRAMES) if number % 3), turned="hflip,"
    ),
    "broadcast": Foreign("broadcast.ts", _broadcast),
    "archive": Foreign(
        "archive.mkv",
        _film(*BOTH, "-vf", "crop=127:95:0:0", "-c:v", "ffv1", "-pix_fmt", "yuv422p10le", "-c:a", "flac"),
        size=(126, 94),
    ),
}
"""Sources with several faults each, for every run of the tests."""

SOURCES: Mapping[str, Foreign] = {
    "variable frame rate": Foreign("variable.mp4", _variable, numbers=tuple(number for number in range(FRAMES) if number % 3)),
    "rotated by a quarter": Foreign("rotated.mp4", _rotated, size=(96, 128), turned="transpose=clock,"),
    "5.1": Foreign("surround.mkv", _film(*BOTH, *H264, "-c:a", "ac3", "-ac", "6")),
    "mono": Foreign("mono.mp4", _film(*BOTH, *H264, "-c:a", "aac", "-ac", "1")),
    "no audio": Foreign("silent.mp4", _film(*H264, inputs=()), sounds=0),
    "4:2:2": Foreign("422.mp4", _film(*BOTH, "-c:v", "libx264", "-pix_fmt", "yuv422p10le", "-c:a", "aac")),
    "HDR flags": Foreign(
        "hdr.mp4", _film(*BOTH, "-c:v", "libx265", "-x265-params", HDR, "-pix_fmt", "yuv420p10le", "-tag:v", "hvc1", "-c:a", "aac")
    ),
    "odd sizes": Foreign(
        "odd.mkv", _film(*BOTH, "-vf", "crop=127:95:0:0", "-c:v", "ffv1", "-pix_fmt", "yuv444p", "-c:a", "flac"), size=(126, 94)
    ),
    "B-frames and an edit list": Foreign("trimmed.mp4", _trimmed, numbers=tuple(range(12, FRAMES))),
    "timecode track": Foreign("timecode.mov", _film(*BOTH, *H264, "-c:a", "pcm_s16le", "-timecode", "10:00:00:00")),
    "transport stream": Foreign("stream.ts", _film(*BOTH, *H264, "-c:a", "aac")),
    "clock that wraps": Foreign("wrapped.ts", _wrapped),
    "Matroska": Foreign("film.mkv", _film(*BOTH, *H264, "-c:a", "libopus")),
    "WebM": Foreign("film.webm", _film(*BOTH, "-c:v", "libvpx-vp9", "-b:v", "1M", "-cpu-used", "8", "-c:a", "libopus")),
    "ProRes": Foreign("film.mov", _film(*BOTH, "-c:v", "prores_ks", "-pix_fmt", "yuv422p10le", "-c:a", "pcm_s24le")),
    "MPEG-2": Foreign("film.mpg", _film(*BOTH, "-c:v", "mpeg2video", "-q:v", "2", "-bf", "2", "-c:a", "mp2")),
    "AVI": Foreign("film.avi", _film(*BOTH, "-c:v", "mpeg4", "-q:v", "2", "-c:a", "mp2")),
    "interlaced": Foreign(
        "interlaced.ts", _film(*BOTH, "-c:v", "mpeg2video", "-q:v", "2", "-flags", "+ildct+ilme", "-top", "1", "-c:a", "mp2")
    ),
    "pixels that are not square": Foreign("wide.mp4", _film(*BOTH, "-vf", "setsar=4/3", *H264, "-c:a", "aac"), size=(170, 96)),
    "picture after sound": Foreign("late.mkv", _late),
    "one picture": Foreign("one.mp4", lambda path: film(path, *H264, frames=1), sounds=0, numbers=(0,)),
    "two sounds": Foreign(
        "two.mkv",
        _film("-map", "0:v", "-map", "1:a", "-map", "1:a", *H264, "-c:a", "aac", "-metadata:s:a:0", "language=ger", "-shortest"),
        sounds=2,
    ),
}

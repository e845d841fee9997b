"""Small films for tests, made by ffmpeg. Every film flashes white and beeps for a tenth of a second at 0, 2, 4
and so on, and hums softly in between: a shift between picture and sound, a lost part and a silence can be measured (`measure.py`).

`changing` makes the film that changes its size, shape, frame rate, pixel format, sample rate and sound layout in the middle. The
others are recordings as real devices make them: `between_keys`, `clock_jump`, `two_programmes`, `still`, `late` and more.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.sources.numbered_frames import tool

PERIOD: Final = 2.0
"""Seconds between two flashes."""
LASTS: Final = 0.1
"""Seconds that a flash and a beep last."""
_LAYOUTS: Final = {1: "mono", 2: "stereo", 6: "5.1"}
_PACKET: Final = 188
_PICTURE_PID: Final = 0x100
TABLES: Final = (0, 0x11, 0x1000)
"""The tables that ffmpeg writes into a transport stream: programmes, names, tracks."""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a part of a film. `rate` is in frames a second, `sample_rate` in Hz; `sar` is the shape of a pixel."""

    size: tuple[int, int] = (320, 180)
    rate: str = "25"
    pixels: str = "yuv420p"
    sample_rate: int = 48_000
    channels: int = 2
    seconds: float = 4.0
    sar: str = "1/1"


WIDE: Final = Form(channels=6)
"""Picture in 16:9, sound in 5.1."""
NARROW: Final = Form(size=(240, 180), rate="30", pixels="yuv422p", sample_rate=44_100, channels=2)
"""Another size, shape, frame rate, pixel format, sample rate and sound layout."""
SMALL: Final = Form(size=(160, 90), rate="24", channels=1)
CHANGES: Final = (WIDE, NARROW, SMALL)
"""The parts of the changing film: 12 seconds with flashes and beeps at 0, 2, 4, 6, 8 and 10."""

Coding = Sequence[str]
H264: Final[Coding] = ("-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-bf", "0", "-sc_threshold", "0")
H264_B: Final[Coding] = ("-c:v", "libx264", "-preset", "veryfast", "-g", "50", "-bf", "2", "-sc_threshold", "0")
HEVC: Final[Coding] = (
    *("-c:v", "libx265", "-preset", "ultrafast"),
    *("-x265-params", "keyint=50:min-keyint=50:scenecut=0:log-level=none"),
)
MPEG2: Final[Coding] = ("-c:v", "mpeg2video", "-q:v", "4", "-g", "50", "-bf", "2", "-sc_threshold", "1000000000")
VP8: Final[Coding] = ("-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-g", "50", "-b:v", "1M", "-threads", "1")
AAC: Final[Coding] = ("-c:a", "aac", "-aac_coder", "fast")
AC3: Final[Coding] = ("-c:a", "ac3")
MP2: Final[Coding] = ("-c:a", "mp2")
OPUS: Final[Coding] = ("-c:a", "libopus")


def ffmpeg(*arguments: str, folder: Path | None = None) -> None:
    """Runs in `folder`, if it is given."""
    subprocess.run([tool("ffmpeg"), "-v", "error", "-y", *arguments], check=True, stdin=subprocess.DEVNULL, cwd=folder)


def flashing(form: Form = Form()) -> tuple[str, ...]:
    """Two inputs of ffmpeg: a picture that flashes and a sound that beeps."""
    width, height = form.size
    on = f"lt(mod(t+0.0001\\,{PERIOD:g})\\,{LASTS:g})"  # times of frames are rounded
    ground = f"color=black:s={width}x{height}:r={form.rate}:d={form.seconds:g}"
    picture = f"{ground},drawbox=c=white:t=fill:enable='{on}',setsar={form.sar}"
    wave = f"0.04*sin(2*PI*300*t)+0.7*sin(2*PI*1000*t)*lt(mod(t\\,{PERIOD:g})\\,{LASTS:g})"
    channels = "|".join([wave] * form.channels)
    sound = f"aevalsrc='{channels}':c={_LAYOUTS[form.channels]}:s={form.sample_rate}:d={form.seconds:g}"
    return ("-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", sound)


def film(path: Path, form: Form = Form(), *options: str, video: Coding = H264, audio: Coding = AAC) -> Path:
    """A film that stays as it begins. Its container follows from its name; `options` are further ones of the output."""
    ffmpeg(*flashing(form), *_coded(form, video, audio), *options, str(path))
    return path


def changing(path: Path, forms: Sequence[Form] = CHANGES, *, video: Coding = H264, audio: Coding = AC3) -> Path:
    """A film of several forms, one after the other, in one track of picture and one of sound. `path` ends in .ts, or in .webm,
    where Opus keeps its layout."""
    parts, begin = [], 0.0
    for number, form in enumerate(forms):
        part = path.with_name(f"{path.stem}-part{number}{path.suffix}")
        # An encoder's delay would make the sound of a part begin within the part before.
        times = ("-output_ts_offset", f"{begin:g}", "-muxdelay", "0", "-muxpreload", "0") if path.suffix == ".ts" else ()
        ffmpeg(*flashing(form), *_coded(form, video, audio), *times, str(part))
        parts.append(part)
        begin += form.seconds
    if path.suffix == ".ts":
        path.write_bytes(b"".join(part.read_bytes() for part in parts))
    else:
        listed = path.with_suffix(".txt")
        listed.write_text("".join(f"file {part.name}\n" for part in parts))
        ffmpeg("-f", "concat", "-safe", "0", "-i", str(listed), "-c", "copy", str(path))
        listed.unlink()
    for part in parts:
        part.unlink()
    return path


def between_keys(path: Path, *, video: Coding = MPEG2, audio: Coding = MP2, begins: float = 4.3, seconds: float = 12.0) -> Path:
    """A recording of a transport stream that begins at a time between two key frames, which come every two seconds. Nothing of its
    picture can be decoded until the next one. Flashes and beeps keep the times that they have in the whole stream."""
    whole = path.with_name(f"{path.stem}-whole.ts")
    film(whole, Form(seconds=seconds), "-muxdelay", "0", "-muxpreload", "0", video=video, audio=audio)
    data = whole.read_bytes()
    whole.unlink()
    packets = [data[at : at + _PACKET] for at in range(0, len(data), _PACKET)]
    tables = {pid(packet): packet for packet in reversed(packets) if pid(packet) in TABLES}
    first = next(place for place, packet in enumerate(packets) if (stamp(packet) or 0.0) >= begins)
    path.write_bytes(b"".join([*(tables[pid] for pid in TABLES if pid in tables), *packets[first:]]))
    return path


def clock_jump(path: Path, *, jump: float = 5000.0, video: Coding = H264, audio: Coding = AAC) -> Path:
    """Two parts of four seconds in one transport stream, whose clock jumps in between; a negative jump goes back. Whoever plays it
    sees flashes at 0, 2, 4 and 6."""
    parts, start = [], max(-jump, 0.0)
    for number, offset in enumerate((start, start + jump)):
        part = path.with_name(f"{path.stem}-part{number}.ts")
        film(part, Form(), "-output_ts_offset", f"{offset:g}", video=video, audio=audio)
        parts.append(part)
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    for part in parts:
        part.unlink()
    return path


def two_programmes(path: Path) -> Path:
    """A transport stream: programme 1, "Tone", has a picture of 160x90 without flashes and a steady tone; programme 2, "Flashes",
    has the larger picture, of 320x180, and beeps."""
    form = Form(seconds=6)
    tone = ("-f", "lavfi", "-i", "testsrc2=s=160x90:r=25:d=6", "-f", "lavfi", "-i", "sine=300:d=6:r=48000")
    tracks = ("-map", "0", "-map", "1", "-map", "2", "-map", "3")
    programmes = ("-program", "title=Tone:program_num=1:st=0:st=1", "-program", "title=Flashes:program_num=2:st=2:st=3")
    ffmpeg(*tone, *flashing(form), *tracks, *_coded(form, H264, AAC), *programmes, "-f", "mpegts", str(path))
    return path


def still(path: Path, *, begins: float = 3.0, ends: float = 13.0, seconds: float = 16.0) -> Path:
    """A screen recording: its picture moves, has no frame while it stands still from `begins` to `ends`, and moves again. It
    flashes where it moves."""
    form = Form(rate="30", seconds=seconds)
    moving = ("-vf", f"select='lt(t,{begins:g})+gt(t,{ends:g})'", "-fps_mode", "vfr")
    ffmpeg(*flashing(form), *moving, *_coded(form, ("-c:v", "libx264", "-preset", "veryfast", "-g", "300"), AAC), str(path))
    return path


def slides(path: Path, times: Sequence[float] = (0.0, 5.0, 11.0), *, seconds: float = 16.0) -> Path:
    """A recording of a lecture: one frame for each slide, and sound."""
    form = Form(rate="25", seconds=seconds)
    at = "+".join(f"lt(abs(t-{time:g}),0.01)" for time in times)
    coded = _coded(form, ("-c:v", "libx264", "-preset", "veryfast", "-g", "300"), AAC)
    ffmpeg(*flashing(form), "-vf", f"select='{at}'", "-fps_mode", "vfr", *coded, str(path))
    return path


def late(path: Path, *, picture: float = 0.0, sound: float = 0.0, form: Form = Form(seconds=8)) -> Path:
    """A film whose picture or sound begins later than the other one: its first seconds are missing, so what is there keeps its
    time. Flashes and beeps are in sync."""
    whole = path.with_name(f"{path.stem}-whole.mkv")
    film(whole, form, video=("-c:v", "libx264", "-preset", "ultrafast", "-g", "1", "-bf", "0"))
    inputs = [option for begin in (picture, sound) for option in ("-ss", f"{begin:g}", "-i", str(whole))]
    moved = ("-itsoffset", f"{picture:g}", *inputs[:4], "-itsoffset", f"{sound:g}", *inputs[4:])
    ffmpeg(*moved, "-map", "0:v", "-map", "1:a", "-c", "copy", str(path))
    whole.unlink()
    return path


def sound_first(path: Path, *, earlier: float = 0.4, form: Form = Form(seconds=8)) -> Path:
    """A film whose sound begins before its picture; both are then there to the end. Flashes lag behind beeps by `earlier`."""
    whole = path.with_name(f"{path.stem}-whole.mp4")
    film(whole, form)
    ffmpeg("-itsoffset", f"{earlier:g}", "-i", str(whole), "-i", str(whole), "-map", "0:v", "-map", "1:a", "-c", "copy", str(path))
    whole.unlink()
    return path


def late_subtitle(path: Path, *, ends: float = 30.0, form: Form = Form(seconds=6)) -> Path:
    """A film with a subtitle that ends long after its picture and sound. `path` ends in .mkv."""
    text = path.with_suffix(".srt")
    clock = f"00:00:{int(ends):02d},000"
    text.write_text(f"1\n00:00:01,000 --> 00:00:02,000\nHello\n\n2\n00:00:{int(ends) - 2:02d},000 --> {clock}\nLate\n")
    tracks = ("-map", "0", "-map", "1", "-map", "2")
    ffmpeg(*flashing(form), "-i", str(text), *tracks, *_coded(form, H264, AAC), "-c:s", "srt", str(path))
    text.unlink()
    return path


def _coded(form: Form, video: Coding, audio: Coding) -> tuple[str, ...]:
    """An encoder of sound that has no such sample rate or layout gets what it takes."""
    profile = ("-pix_fmt", form.pixels if "libvpx" not in video and "mpeg2video" not in video else "yuv420p")
    if "libopus" in audio:
        return (*video, *profile, *audio, "-ar", "48000", "-ac", "2")
    return (*video, *profile, *audio, "-b:a", "320k" if form.channels > 2 else "128k")


def pid(packet: bytes) -> int:
    return (packet[1] & 0x1F) << 8 | packet[2]


def stamp(packet: bytes) -> float | None:
    """The presentation time of a picture that begins in this packet, in seconds."""
    if pid(packet) != _PICTURE_PID or not packet[1] & 0x40:
        return None
    body = packet[4 + (1 + packet[4] if packet[3] & 0x20 else 0) :]
    if body[:3] != b"\0\0\1" or not body[7] & 0x80:
        return None
    at = body[9:14]
    return ((at[0] >> 1 & 7) << 30 | at[1] << 22 | (at[2] >> 1) << 15 | at[3] << 7 | at[4] >> 1) / 90_000

"""How pictures and sound are encoded, as options of ffmpeg."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from workers.media.file import seconds
from workers.media.source import Picture, Sound

KEY_SECONDS: Final = 2
_KEYS: Final = ("-forced-idr", "1", "-sc_threshold", "0", "-g", "600")
_TIMES: Final = ("-fps_mode", "vfr", "-enc_time_base", "demux")
_NEAR: Final = 0.004
"""Seconds: less than half a frame at 120 frames in a second."""
_THREADS: Final = 4
_LARGE: Final = 1080
"""Lines. Encoders hold the pictures that they look ahead at, and the memory of the process is limited."""
LAYOUTS: Final = {1: ("mono", "96k"), 2: ("stereo", "160k"), 6: ("5.1", "384k")}


def progressive_sdr(picture: Picture) -> tuple[str, ...]:
    """Filters that make the picture progressive and of standard dynamic range."""
    deinterlaced = ("bwdif=mode=send_frame:deint=interlaced",) if picture.interlaced else ()
    return (*deinterlaced, *picture.colours.converted())


def still(picture: Picture) -> tuple[str, ...]:
    """Filters that make a frame what viewers of pictures show without further knowledge: of standard dynamic range, with square
    pixels."""
    square = f"scale={picture.width}:{picture.height}:flags=lanczos,setsar=1"
    return (*picture.colours.converted(), *(() if picture.square else (square,)))


def h264(lines: int, *, bit_rate: int, quality: int, keys: Sequence[float] = ()) -> tuple[str, ...]:
    """With a key frame every two seconds and at these `keys`, at the same times whatever the size. `quality` is the rate factor,
    lower is better, and `bit_rate` the most that is used for it. Frames keep their times."""
    limits = ("-maxrate", str(bit_rate), "-bufsize", str(2 * bit_rate))
    memory = ("-threads", str(_THREADS), *(("-rc-lookahead", "10") if lines > _LARGE else ()))
    coded = ("-c:v", "libx264", "-preset", "fast", "-crf", str(quality), *limits, "-pix_fmt", "yuv420p")
    return (*coded, *memory, "-force_key_frames", _forced(keys), *_KEYS, *_TIMES)


def _forced(keys: Sequence[float]) -> str:
    """ffmpeg's condition for a key frame. Those at `keys` do not put off the next one of every two seconds."""
    if not keys:
        return f"expr:gte(t,n_forced*{KEY_SECONDS})"
    usual = f"isnan(prev_forced_t)+gte(t+{_NEAR},(floor((prev_forced_t+{_NEAR})/{KEY_SECONDS})+1)*{KEY_SECONDS})"
    return f"expr:{'+'.join((usual, *(f'lt(abs(t-{seconds(key)}),{_NEAR})' for key in keys)))}"


def aac(sound: Sound, place: int = 0, *, at_zero: bool) -> tuple[str, ...]:
    """The audio track at this place of its output: 48,000 Hz, with one, two or six channels, silence where there is no sound.
    With `at_zero` it begins at time 0, with the first picture."""
    layout, bit_rate = LAYOUTS[channels_of(sound)]
    timed = f"aresample=48000:async=1{':first_pts=0' if at_zero else ''}"
    return (f"-filter:a:{place}", f"{timed},aformat=channel_layouts={layout}", f"-c:a:{place}", "aac", f"-b:a:{place}", bit_rate)


def channels_of(sound: Sound) -> int:
    """How many of its channels are encoded."""
    return max(known for known in LAYOUTS if known <= sound.channels)

"""The encoding of pictures and sound, as options of ffmpeg."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final

from workers.media import filters
from workers.media.filters import PICTURE_TIMES, fitted, key_frames
from workers.media.source import Picture, Sound

_ANY_SIZE: Final = "format=yuv444p|yuv444p10le|gbrp|gbrp10le|gbrp16le|gray"
"""Pixel formats in which a side may be odd, and in which no colour is lost."""
_THREADS: Final = 4
_LARGE: Final = 1080
"""Lines above which the look-ahead is reduced. Encoders hold the pictures that they look ahead at, and the memory of the process is
limited."""
LAYOUTS: Final = {1: ("mono", "96k"), 2: ("stereo", "160k"), 6: ("5.1", "384k")}


def progressive_sdr(picture: Picture) -> tuple[str, ...]:
    """Return filters that make the picture progressive and of standard dynamic range."""
    deinterlaced = ("bwdif=mode=send_frame:deint=interlaced",) if picture.interlaced else ()
    return (*deinterlaced, *picture.colours.converted())


def still(picture: Picture) -> tuple[str, ...]:
    """Return filters that turn a frame into a picture that every viewer shows correctly: standard dynamic range, and square pixels.

    A frame of another shape than the film has bars, as in a player.
    """
    return (*picture.colours.converted(), fitted(picture.width, picture.height, coded=_ANY_SIZE))


def film(picture: Picture) -> tuple[str, ...]:
    """Return filters that give the picture of a film one form: its even size, square pixels, and the colours of a film."""
    width, height = (2 * ceil(side / 2) for side in (picture.width, picture.height))
    return (*picture.colours.converted(), fitted(width, height, coded=picture.colours.film.coded))


def h264(lines: int, *, bit_rate: int, quality: int, keys: Sequence[float] = ()) -> tuple[str, ...]:
    """Return the options of H.264 with a key frame every two seconds and at these `keys`, at the same times for every size.

    `quality` is the rate factor, lower is better, and `bit_rate` the largest bit rate. Frames keep their times.
    """
    limits = ("-maxrate", str(bit_rate), "-bufsize", str(2 * bit_rate))
    memory = ("-threads", str(_THREADS), *(("-rc-lookahead", "10") if lines > _LARGE else ()))
    coded = ("-c:v", "libx264", "-preset", "fast", "-crf", str(quality), *limits, "-pix_fmt", "yuv420p")
    return (*coded, *memory, *key_frames(keys), *PICTURE_TIMES)


def aac(channels: int, place: int = 0) -> tuple[str, ...]:
    """Return the codec of the audio track at this place of its output, for sound with so many channels."""
    return (f"-c:a:{place}", "aac", f"-b:a:{place}", LAYOUTS[filters.channels_of(channels)][1])


def channels_of(sound: Sound) -> int:
    """Return the number of its channels that are encoded."""
    return filters.channels_of(sound.channels)

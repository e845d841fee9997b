"""How pictures and sound are encoded, as options of ffmpeg."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final

from workers.media import filters
from workers.media.filters import PICTURE_TIMES, SOUND_LINE, fitted, key_frames, sound_form
from workers.media.source import Picture, Sound

_ANY_SIZE: Final = "format=yuv444p|yuv444p10le|gbrp|gbrp10le|gbrp16le|gray"
"""Forms of pixels in which a side may be odd, and in which no colour is lost."""
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
    pixels. A frame of another shape than the film has bars, as in a player."""
    return (*picture.colours.converted(), fitted(picture.width, picture.height, coded=_ANY_SIZE))


def film(picture: Picture) -> tuple[str, ...]:
    """Filters that give the picture of a film one form: its even size, square pixels, and the colours of a film."""
    width, height = (2 * ceil(side / 2) for side in (picture.width, picture.height))
    return (*picture.colours.converted(), fitted(width, height, coded=picture.colours.film.coded))


def h264(lines: int, *, bit_rate: int, quality: int, keys: Sequence[float] = ()) -> tuple[str, ...]:
    """With a key frame every two seconds and at these `keys`, at the same times whatever the size. `quality` is the rate factor,
    lower is better, and `bit_rate` the most that is used for it. Frames keep their times."""
    limits = ("-maxrate", str(bit_rate), "-bufsize", str(2 * bit_rate))
    memory = ("-threads", str(_THREADS), *(("-rc-lookahead", "10") if lines > _LARGE else ()))
    coded = ("-c:v", "libx264", "-preset", "fast", "-crf", str(quality), *limits, "-pix_fmt", "yuv420p")
    return (*coded, *memory, *key_frames(keys), *PICTURE_TIMES)


def aac(channels: int, place: int = 0) -> tuple[str, ...]:
    """The codec of the audio track at this place of its output, for sound of so many channels."""
    return (f"-c:a:{place}", "aac", f"-b:a:{place}", LAYOUTS[filters.channels_of(channels)][1])


def heard(source: str, made: str, *, sound: Sound) -> str:
    """A graph from sound in its one form to what is encoded, both labels: from the first picture on, with silence where there is no
    sound."""
    return f"[{source}]{SOUND_LINE},{sound_form(sound.channels, sample='fltp')}[{made}]"


def channels_of(sound: Sound) -> int:
    """How many of its channels are encoded."""
    return filters.channels_of(sound.channels)

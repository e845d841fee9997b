"""The common form of picture and sound to which all items of a playout are converted, so that an encode reads one stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

from domain.channel.encoder_settings import SAMPLE_RATE, EncodeSettings
from workers.adapters.encoders.encode_command import TEST_FPS, exact_rate, largest_picture
from workers.media.colours import FILM, Colours
from workers.media.filters import SOUND_LINE, fitted

CHANNELS: Final = 2
SAMPLE: Final = 2 * CHANNELS
"""The size of a sample of both channels, in bytes."""


@dataclass(frozen=True)
class Canvas:
    """Raw pictures with subsampled colours (4:2:0), and samples of 16 bits for two channels. `sound` is the index of the audio
    stream that is used of an item; an item with fewer streams gives its first one."""

    width: int
    height: int
    rate: Fraction
    sound: int = 0

    @classmethod
    def of(cls, settings: EncodeSettings, *, sound: int = 0) -> Canvas:
        width, height, rate = largest_picture(settings)
        return cls(width, height, exact_rate(rate or TEST_FPS), sound)

    @property
    def picture_bytes(self) -> int:
        return self.width * self.height * 3 // 2

    def samples(self, frame: int) -> int:
        """Return the number of audio samples for the frame with this number. The running total never drifts from the time by more
        than one sample."""
        return self._until(frame + 1) - self._until(frame)

    def seconds(self, frames: int) -> float:
        return float(frames / self.rate)

    def _until(self, frame: int) -> int:
        return int(frame * SAMPLE_RATE / self.rate)

    @cached_property
    def black(self) -> bytes:
        pixels = self.width * self.height
        return b"\x10" * pixels + b"\x80" * (pixels // 2)

    @property
    def picture_format(self) -> Sequence[str]:
        return ("-f", "rawvideo", "-pix_fmt", "yuv420p", "-video_size", f"{self.width}x{self.height}", "-framerate", str(self.rate))

    @property
    def sound_format(self) -> Sequence[str]:
        return ("-f", "s16le", "-ar", str(SAMPLE_RATE), "-ch_layout", "stereo")

    def picture_filter(self, colours: Colours) -> str:
        """Return the filter that fits the whole picture into the middle of a black canvas, turns it as the item demands, and
        converts these colours to those of BT.709."""
        return ",".join((*colours.converted(), fitted(self.width, self.height, coded=FILM.coded)))

    @property
    def sound_filter(self) -> str:
        """The filter for sound whose form stays the same to the end. Its output begins at time 0 and has no gaps."""
        return f"{SOUND_LINE},aformat=sample_fmts=s16:channel_layouts=stereo"

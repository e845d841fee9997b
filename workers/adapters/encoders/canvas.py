"""The one form of picture and sound that all items of a playout are brought to, so that an encode reads them as one stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

from domain.configuration.encoder_settings import SAMPLE_RATE, EncodeSettings
from workers.adapters.encoders.encode_command import TEST_FPS, largest_picture

CHANNELS: Final = 2
SAMPLE: Final = 2 * CHANNELS
"""Bytes of a sample of both channels."""


@dataclass(frozen=True)
class Canvas:
    """Raw pictures with a half of colours, and samples of 16 bits for two channels. `sound` is the audio stream of an item that is
    taken, the first one where it has not so many."""

    width: int
    height: int
    rate: Fraction
    sound: int = 0

    @classmethod
    def of(cls, settings: EncodeSettings, *, sound: int = 0) -> Canvas:
        width, height, rate = largest_picture(settings)
        return cls(width, height, Fraction(rate or TEST_FPS).limit_denominator(1001), sound)

    @property
    def picture_bytes(self) -> int:
        return self.width * self.height * 3 // 2

    def samples(self, frame: int) -> int:
        """Of the frame with this number: all together never differ from the time by more than one."""
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

    @property
    def picture_filter(self) -> str:
        """Whole, in the middle of black; turned as the item says; at one rate, from the beginning of the item."""
        wide = f"gte(dar\\,{self.width}/{self.height})"
        size = (
            f"w=if({wide}\\,{self.width}\\,max(2\\,2*round({self.height}*dar/2)))"
            f":h=if({wide}\\,max(2\\,2*round({self.width}/dar/2))\\,{self.height})"
        )
        padded = f"pad={self.width}:{self.height}:-1:-1:black"
        return f"scale={size},setsar=1,{padded},fps=fps={self.rate}:start_time=0,format=yuv420p"

    @property
    def sound_filter(self) -> str:
        return f"aresample={SAMPLE_RATE}:async=1000:first_pts=0,aformat=sample_fmts=s16:channel_layouts=stereo"

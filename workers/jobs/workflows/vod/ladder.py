"""The ladder of renditions: sizes and bit rates, never larger than the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from workers.media.source import Picture

USUAL: Final = (1440, 1080, 720, 480, 360, 240)
LARGEST: Final = 2160
_APART: Final = 0.8
"""The largest ratio of a rendition's lines to those of the next larger one; one in between would help no player."""
_FULL_HD: Final = 1920 * 1080
_AT_FULL_HD: Final = 5_000_000
_LEAST: Final = 200_000
_FAST: Final = 35.0


@dataclass(frozen=True, slots=True)
class Rendition:
    """A rendition. `bit_rate` is the largest, in bits per second."""

    lines: int
    width: int
    height: int
    bit_rate: int

    @property
    def file(self) -> str:
        return f"video-{self.lines}.mp4"


def ladder(picture: Picture, wanted: Sequence[int] | None) -> tuple[Rendition, ...]:
    """Return the renditions from the largest to the smallest.

    `wanted` sizes larger than the source are left out. The source's own size is used if none remains, or if none is wanted.
    """
    top = min(picture.lines, LARGEST)
    if wanted is not None:
        sizes = sorted((lines for lines in wanted if lines <= picture.lines), reverse=True)
    else:
        sizes = [top]
        for lines in USUAL:
            if lines <= sizes[-1] * _APART:
                sizes.append(lines)
    made = [_rendition(picture, lines) for lines in sizes or [top]]
    return tuple({rendition.lines: rendition for rendition in made}.values())


def _rendition(picture: Picture, lines: int) -> Rendition:
    scale = lines / picture.lines
    width, height = _even(picture.width * scale), _even(picture.height * scale)
    weight = (width * height / _FULL_HD) ** 0.75 * (1.5 if picture.rate > _FAST else 1.0)
    return Rendition(min(width, height), width, height, max(round(_AT_FULL_HD * weight), _LEAST))


def _even(pixels: float) -> int:
    """Round down to an even number, allowing for rounding errors."""
    return max(2 * int((pixels + 0.01) / 2), 2)

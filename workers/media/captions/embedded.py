"""Captions within the pictures of a whole film: the list of them, and those of CEA-608 as Scenarist files.

A Scenarist file (SCC) holds the pairs of one channel with their times. The readers of captions convert it to text, as they do with
an uploaded file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Final

from workers.media.captions.a53 import CaptionFinder, CaptionServices, Triple

MOST_PAIRS: Final = 200_000
"""The largest number of pairs of a channel: those of more than three hours without a pause."""
_CHANNELS: Final = (("CC1", "CC2"), ("CC3", "CC4"))
_HEAD: Final = "Scenarist_SCC V1.0\n"
_RATE: Final = 30_000 / 1_001
_IN_TEN_MINUTES: Final = 17_982
_IN_A_MINUTE: Final = 1_798
_HELD_BACK: Final = 32
_MOST_IN_A_LINE: Final = 32
_AT_ONCE: Final = frozenset({0x20, 0x25, 0x26, 0x27, 0x29, 0x2C, 0x2D, 0x2F})
"""Control codes that change the picture when they arrive. Each begins a separate line, so that its time is exact."""

Timed = tuple[float, Sequence[Triple]]
_Pair = tuple[float, int, int]


class EmbeddedCaptions:
    """The captions in the pictures of a film. `pictures` are the times of the pictures in seconds with their triples, in the order
    in which they are decoded. `truncated` are channels of which only the first `MOST_PAIRS` pairs are stored."""

    def __init__(self, pictures: Iterable[Timed]) -> None:
        finder = CaptionFinder()
        fields = (_Split(_CHANNELS[0]), _Split(_CHANNELS[1]))
        for at, _, triples in _in_display_order(pictures):
            finder.take(triples)
            for triple in triples:
                if triple.type < 2:
                    fields[triple.type].take(at, triple.first & 0x7F, triple.second & 0x7F)
        self.services: CaptionServices = finder.services()
        self._pairs = fields[0].pairs | fields[1].pairs
        self.truncated = tuple(sorted(name for name, pairs in self._pairs.items() if len(pairs) >= MOST_PAIRS))

    def scenarist(self, channel: str) -> str:
        """Return the pairs of a channel as a Scenarist file, as if they were those of CC1."""
        return scenarist(self._pairs.get(channel, ()))


def _in_display_order(pictures: Iterable[Timed]) -> Iterator[tuple[float, int, Sequence[Triple]]]:
    """Yield pictures in the order in which they are shown. A decoder holds back at most 16 pictures."""
    waiting: list[tuple[float, int, Sequence[Triple]]] = []
    for number, (at, triples) in enumerate(pictures):
        if not triples:
            continue
        heappush(waiting, (at, number, triples))
        if len(waiting) > _HELD_BACK:
            yield heappop(waiting)
    while waiting:
        yield heappop(waiting)


class _Split:
    """A field of CEA-608, whose two channels take turns."""

    def __init__(self, channels: tuple[str, str]) -> None:
        self._channels = channels
        self._channel: str | None = None
        self.pairs: dict[str, list[_Pair]] = {channel: [] for channel in channels}

    def take(self, at: float, first: int, second: int) -> None:
        """Take a pair without its parity bits. Data about programmes are skipped, from their control code until the next one of
        captions."""
        if 0x10 <= first < 0x20:
            self._channel = self._channels[first >> 3 & 1]
            first &= 0x17
            if first == 0x15 and 0x20 <= second < 0x30:
                first = 0x14
        elif 0 < first < 0x10:
            self._channel = None
        if self._channel is not None and first and len(self.pairs[self._channel]) < MOST_PAIRS:
            self.pairs[self._channel].append((at, first, second))


def scenarist(pairs: Iterable[_Pair]) -> str:
    """Return a Scenarist file. Pairs in consecutive frames share a line with the time of the first one. Pairs may arrive faster
    than the format allows; those that change the picture keep their times."""
    lines: list[str] = []
    words: list[str] = []
    begun = 0
    for at, first, second in pairs:
        frame = round(at * _RATE)
        alone = first == 0x14 and second in _AT_ONCE
        if words and (alone or frame > begun + len(words) or len(words) >= _MOST_IN_A_LINE):
            lines.append(f"{_time_code(begun)}\t{' '.join(words)}\n")
            words = []
        if not words:
            begun = frame
        words.append(f"{_odd(first):02x}{_odd(second):02x}")
    if words:
        lines.append(f"{_time_code(begun)}\t{' '.join(words)}\n")
    return "\n".join((_HEAD, *lines))


def _time_code(frame: int) -> str:
    """Return a time code with dropped numbers, so that it matches real time."""
    tens, rest = divmod(frame, _IN_TEN_MINUTES)
    number = frame + 18 * tens + (2 * ((rest - 2) // _IN_A_MINUTE) if rest >= 2 else 0)
    second, frames = divmod(number, 30)
    return f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d};{frames:02d}"


def _odd(value: int) -> int:
    return value | 0x80 if value.bit_count() % 2 == 0 else value

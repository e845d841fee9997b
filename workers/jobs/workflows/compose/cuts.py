"""Places to cut a source: between frames as they are shown, and between frames as they are decoded. This module is pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from workers.media.file import Packet

_HALF = 0.0005


@dataclass(frozen=True, slots=True)
class Start:
    """The frame that is shown at a time, and the last key frame up to it; None if there is none."""

    at: float
    key: float | None


@dataclass(frozen=True, slots=True)
class End:
    """The end of the last frame before a time, and the time until which a copy may last.

    The frames until `copied` are decoded without those after it; it is None if there is no such time nearby. The frame begins `at`.
    """

    after: float
    copied: float | None
    at: float


def start_of(packets: Sequence[Packet], time: float) -> Start | None:
    """Return the frame that is shown at a time; None if no frame is shown then."""
    shown = sorted(packet.at for packet in packets if packet.shown)
    at = max((frame for frame in shown if frame <= time + _HALF), default=None)
    if at is None:
        return None
    keys = [packet.at for packet in packets if packet.key and packet.shown and packet.at <= at + _HALF]
    return Start(at, max(keys, default=None))


def end_of(packets: Sequence[Packet], time: float) -> End | None:
    """Return the end of the last frame before a time; None if there is no frame, or the source ends earlier."""
    shown = sorted((packet.at, packet.lasts) for packet in packets if packet.shown)
    until = [place for place, (at, _) in enumerate(shown) if at < time - _HALF]
    if not until:
        return None
    place = until[-1]
    after = shown[place + 1][0] if place + 1 < len(shown) else _end(shown)
    if time > after + 2 * _HALF:
        return None
    return End(after, _copy_end(packets, after), shown[place][0])


def whole(packets: Sequence[Packet]) -> float | None:
    """Return when the last of these frames ends; None if there are none."""
    shown = sorted((packet.at, packet.lasts) for packet in packets if packet.shown)
    return _end(shown) if shown else None


def _copy_end(packets: Sequence[Packet], after: float) -> float | None:
    """Return the first time, from `after` on, before which all frames are shown and decoded; None if there is none."""
    times = [packet.at for packet in packets]
    latest = list(accumulate(times, max))
    earliest = list(accumulate(reversed(times), min))[::-1]
    for place in range(1, len(times)):
        if latest[place - 1] < earliest[place] and earliest[place] >= after - _HALF:
            return earliest[place]
    end = _end(sorted((packet.at, packet.lasts) for packet in packets if packet.shown))
    return end if abs(end - after) <= 2 * _HALF else None


def _end(shown: Sequence[tuple[float, float]]) -> float:
    """Return the end of the last frame. Some containers do not state its duration; then it is as long as the one before."""
    at, lasts = shown[-1]
    if lasts <= 0 and len(shown) > 1:
        lasts = at - shown[-2][0]
    return at + lasts

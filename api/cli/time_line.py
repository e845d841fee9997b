"""The time line of a playlist: the times of its items and breaks, as far as lengths are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from domain.asset.times import from_start, written
from domain.composition.checks import event_of
from domain.composition.values import Item, Marker, Playlist
from domain.kernel.errors import Malformed
from domain.kernel.stream_time import NO_TIME, stream_point

_WIDTH: Final = 32
"""The characters of the bar that shows the position of an item in the film."""
_UNKNOWN: Final = "?"
_ZERO: Final = timedelta(0)


@dataclass(frozen=True, slots=True)
class Break:
    """A break of an item. `at` is its time in the film; None if it is not known."""

    at: timedelta | None
    marker: Marker


@dataclass(frozen=True, slots=True)
class Entry:
    """An item. `at` is the time in the film when it begins, `length` its length; None if it is not known."""

    item: Item
    at: timedelta | None
    length: timedelta | None
    breaks: Sequence[Break]


def time_line(playlist: Playlist, *, durations: Mapping[UUID, float]) -> list[Entry]:
    """Return the entries of a playlist. `durations` are the lengths of the films of Events, in seconds. No time is known after an
    item of unknown length."""
    entries, at = list[Entry](), _ZERO if playlist.items else None
    for item in playlist.items:
        event = event_of(item)
        length = _length(item, None if event is None else durations.get(event))
        breaks = [Break(_sum(at, _between(item.start or NO_TIME, marker.start_at)), marker) for marker in item.markers or ()]
        entries.append(Entry(item, at, length, breaks))
        at = _sum(at, length)
    return entries


def bar(entry: Entry, *, whole: timedelta | None) -> str:
    """Return a bar that shows the position of the item in the film, at least one character wide; empty if it is not known."""
    if whole is None or whole <= _ZERO or entry.at is None or entry.length is None:
        return ""
    first = min(int(entry.at / whole * _WIDTH), _WIDTH - 1)
    last = max(int((entry.at + entry.length) / whole * _WIDTH), first + 1)
    return " " * first + "#" * (last - first) + " " * (_WIDTH - last)


def whole_length(entries: Sequence[Entry]) -> timedelta | None:
    return _sum(entries[-1].at, entries[-1].length) if entries else None


def clock(time: timedelta | None) -> str:
    """Return a time as `hh:mm:ss.fff`, or a question mark."""
    return _UNKNOWN if time is None else written(time)


def _length(item: Item, duration: float | None) -> timedelta | None:
    start = item.start or NO_TIME
    if item.end is not None:
        return _between(start, item.end)
    since = _between(NO_TIME, start)
    return None if duration is None or since is None else max(timedelta(seconds=duration) - since, _ZERO)


def _between(start: str, end: str) -> timedelta | None:
    """Return the time between two points; None if one is a date-time and the other an offset, or if one cannot be parsed."""
    try:
        first, last = stream_point(start, field="start"), stream_point(end, field="end")
    except Malformed:
        return None
    if first.date_time is not None and last.date_time is not None:
        return last.date_time - first.date_time
    return from_start(last, None) - from_start(first, None) if first.is_span and last.is_span else None


def _sum(first: timedelta | None, second: timedelta | None) -> timedelta | None:
    return None if first is None or second is None else first + second

"""What of a playlist is to be on the air: pure, from the playlist, what was on the air last, and how long items are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workers.playout_ports import PlayoutPlaylist


@dataclass(frozen=True, slots=True)
class Place:
    """An item, as its playlist had it: where it was, and its mark."""

    index: int
    mark: str


@dataclass(frozen=True, slots=True)
class Anchor:
    """What was on the air last: the beginning of the item at `place` was due `at`, in seconds since 1970. `over`: the playlist was
    over then, and nothing of it was on the air any more."""

    place: Place
    at: float
    over: bool = False


@dataclass(frozen=True, slots=True)
class Due:
    """An item and how far into it, in seconds. `over`: it was the last one, and is over. `began`: when its beginning was due, None
    where it begins now."""

    place: Place
    offset: float = 0.0
    over: bool = False
    began: float | None = None


def found(playlist: PlayoutPlaylist, place: Place) -> Place | None:
    """The same item in this playlist, the nearest one where there are several; None where it has none."""
    indices = [index for index, mark in enumerate(playlist.marks) if mark == place.mark]
    nearest = min(indices, key=lambda index: abs(index - place.index), default=None)
    return None if nearest is None else Place(nearest, place.mark)


def successor(playlist: PlayoutPlaylist, after: Place | None) -> Place | None:
    """What follows in this playlist, which may be a changed one: the item behind the same item, or the first one where it has none
    of that. None at the end."""
    same = found(playlist, after) if after is not None else None
    index = same.index + 1 if same is not None else 0
    if index >= len(playlist.marks) and playlist.looped:
        index = 0
    return Place(index, playlist.marks[index]) if index < len(playlist.marks) else None


def due(playlist: PlayoutPlaylist, anchor: Anchor | None, *, now: float, lengths: Mapping[str, float]) -> Due | None:
    """What is to be on the air now, by the clock. `lengths` are in seconds, by mark: an item whose length is not known is taken to
    last still. None where the playlist is empty."""
    if anchor is None or anchor.over:
        place = successor(playlist, anchor.place if anchor is not None else None)
        if place is None:
            return None if anchor is None else Due(anchor.place, over=True)
        return Due(place)
    here = found(playlist, anchor.place)
    at = anchor.at
    if here is None:  # it was taken out: what follows it begins when it is over, at the latest now
        here = successor(playlist, None)
        at = min(at + lengths.get(anchor.place.mark, 0.0), now)
    return None if here is None else _walked(playlist, here, at=at, now=now, lengths=lengths)


def _walked(playlist: PlayoutPlaylist, place: Place, *, at: float, now: float, lengths: Mapping[str, float]) -> Due:
    first = place
    at = _whole_rounds_later(playlist, at, now=now, lengths=lengths)
    while True:
        length = lengths.get(place.mark)
        if length is None or now - at < length:
            return Due(place, max(now - at, 0.0), began=min(at, now))
        at += length
        following = successor(playlist, place)
        if following is None:
            return Due(place, length, over=True)
        place = following
        if place == first and length == 0.0 and not any(lengths.get(mark) for mark in playlist.marks):
            return Due(place)  # nothing of it can be played


def _whole_rounds_later(playlist: PlayoutPlaylist, at: float, *, now: float, lengths: Mapping[str, float]) -> float:
    """A round that is over changes nothing, however many there were."""
    known = [lengths.get(mark) for mark in playlist.marks]
    total = sum(length for length in known if length is not None)
    if not playlist.looped or None in known or total <= 0.0:
        return at
    return at + max(now - at, 0.0) // total * total

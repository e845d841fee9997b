"""The schedule of a playlist: pure functions that compute the item to be on the air from the playlist, the last item on the air,
and the lengths of items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workers.ports.playout import DueItem, Place, PlayoutPlaylist


@dataclass(frozen=True, slots=True)
class PlayoutAnchor:
    """The last item on the air: the beginning of the item at `place` was due `at`, in seconds since 1970. `over` is True if the
    playlist was over then, and nothing was on the air any more."""

    place: Place
    at: float
    over: bool = False


def locate(playlist: PlayoutPlaylist, place: Place) -> Place | None:
    """Return the place of the same item in this playlist, the nearest if there are several; None if it has none."""
    indices = [index for index, mark in enumerate(playlist.marks) if mark == place.mark]
    nearest = min(indices, key=lambda index: abs(index - place.index), default=None)
    return None if nearest is None else Place(nearest, place.mark)


def successor(playlist: PlayoutPlaylist, after: Place | None) -> Place | None:
    """Return the place that follows in this playlist, which may have changed: the item after the same item, or the first one if the
    playlist no longer has that item. None at the end."""
    same = locate(playlist, after) if after is not None else None
    index = same.index + 1 if same is not None else 0
    if index >= len(playlist.marks) and playlist.looped:
        index = 0
    return Place(index, playlist.marks[index]) if index < len(playlist.marks) else None


def due(playlist: PlayoutPlaylist, anchor: PlayoutAnchor | None, *, now: float, lengths: Mapping[str, float]) -> DueItem | None:
    """Return what is to be on the air now, by the clock; None if the playlist is empty. `lengths` are in seconds, by mark: an item
    of unknown length is assumed to continue."""
    if anchor is None or anchor.over:
        place = successor(playlist, anchor.place if anchor is not None else None)
        if place is None:
            return None if anchor is None else DueItem(anchor.place, over=True)
        return DueItem(place)
    here = locate(playlist, anchor.place)
    at = anchor.at
    if here is None:  # it was removed: the next item begins when it is over, at the latest now
        here = successor(playlist, None)
        at = min(at + lengths.get(anchor.place.mark, 0.0), now)
    return None if here is None else _walk(playlist, here, at=at, now=now, lengths=lengths)


def _walk(playlist: PlayoutPlaylist, place: Place, *, at: float, now: float, lengths: Mapping[str, float]) -> DueItem:
    first = place
    at = _whole_rounds_later(playlist, at, now=now, lengths=lengths)
    while True:
        length = lengths.get(place.mark)
        if length is None or now - at < length:
            return DueItem(place, max(now - at, 0.0), began=min(at, now))
        at += length
        following = successor(playlist, place)
        if following is None:
            return DueItem(place, length, over=True)
        place = following
        if place == first and length == 0.0 and not any(lengths.get(mark) for mark in playlist.marks):
            return DueItem(place)  # nothing of it can be played


def _whole_rounds_later(playlist: PlayoutPlaylist, at: float, *, now: float, lengths: Mapping[str, float]) -> float:
    """Skip complete rounds of a looped playlist: they change nothing, however many there were."""
    item_lengths = [lengths.get(mark) for mark in playlist.marks]
    total = sum(length for length in item_lengths if length is not None)
    if not playlist.looped or None in item_lengths or total <= 0.0:
        return at
    return at + max(now - at, 0.0) // total * total

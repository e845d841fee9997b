"""What of the recordings of a publishing point is played: the live window, or all of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any, Final

from workers.media.captions.a53 import NO_CAPTIONS, CaptionServices
from workers.origin.limits import LEAST_SEGMENTS
from workers.origin.recordings import Recording
from workers.origin.track_index import Segment, TrackIndex, TrackInit

_TOGETHER: Final = 3.0
"""Seconds, and the length of a segment, that the first segment of a recording waits for those of the other tracks."""
_BOTH: Final = {"video", "audio"}


@dataclass(frozen=True, slots=True)
class Part:
    """The segments of one track of one recording. `ordinal` counts the recordings of the publishing point."""

    session: int
    ordinal: int
    epoch: float
    init: TrackInit
    segments: Sequence[Segment]


@dataclass(frozen=True, slots=True)
class Track:
    """A rendition. `init` is that of its latest part; `peak` bits per second, `longest` seconds, of all that there is of it."""

    name: str
    init: TrackInit
    parts: Sequence[Part]
    peak: float
    longest: float
    captions: CaptionServices = NO_CAPTIONS
    """The captions that the pictures of the track had in any part."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """`ended`: nothing more comes. `window` is None for all that there is."""

    tracks: Sequence[Track]
    ended: bool
    window: float | None


def timeline(recordings: Sequence[Recording], *, window: float | None, archive: bool, now: float) -> Timeline | None:
    """`window` in seconds, unless the encoder asked for another one. None: there is nothing to play."""
    filled = [one for one in recordings if one.filled and (_complete(one) or _waited(one, now))]
    if not filled:
        return None
    last = filled[-1]
    depth = None if archive else last.state.window or window
    since = float("-inf") if depth is None else max(one.end for one in filled) - depth
    names = dict.fromkeys(name for one in (filled if archive else [last]) for name in one.state.tracks)
    tracks = [found for name in names if (found := _track(name, filled, since)) is not None]
    return Timeline(tracks, last.ended and recordings[-1] is last, depth)


def _complete(recording: Recording) -> bool:
    """Whether every track that the encoder sends has a segment. A player reads the list of tracks once: with the sound alone in it
    there would be no picture until somebody loads the page again."""
    filled = {name: track for name, track in recording.tracks.items() if track.segments}
    if recording.state.described:
        return recording.state.described.keys() <= filled.keys()
    if any(track.segments[0].source >= 0 for track in filled.values()):
        return False  # its master playlist may still come
    kinds = {kind for track in filled.values() if track.init is not None for kind in track.init.kinds}
    return filled.keys() == recording.tracks.keys() and kinds >= _BOTH


def _waited(recording: Recording, now: float) -> bool:
    first = min(track.began for track in recording.tracks.values())
    longest = max(track.longest for track in recording.tracks.values())
    over = recording.state.ended is not None or all(track.ended for track in recording.tracks.values())
    return over or now - first >= _TOGETHER + longest


def _track(name: str, recordings: Sequence[Recording], since: float) -> Track | None:
    found = [(one, index) for one in recordings if (index := one.tracks.get(name)) is not None and index.segments and index.init]
    if not found:
        return None
    parts = []
    for number, (recording, index) in enumerate(found):
        segments = _since(index, since, least=LEAST_SEGMENTS if number == len(found) - 1 else 0)
        if segments and index.init is not None:
            state = recording.state
            init = _described(index.init, state.described.get(name))
            parts.append(Part(state.session, state.ordinal, state.epoch or 0.0, init, segments))
    recording, latest = found[-1]
    peak = max(index.peak for _, index in found)
    init = _described(latest.init or TrackInit(), recording.state.described.get(name))
    longest = max(index.longest for _, index in found)
    return Track(name, init, parts, peak, longest, reduce(or_, (index.captions for _, index in found), NO_CAPTIONS))


def all_captions(tracks: Iterable[Track]) -> CaptionServices:
    return reduce(or_, (one.captions for one in tracks), NO_CAPTIONS)


def _described(init: TrackInit, told: Mapping[str, Any] | None) -> TrackInit:
    """With what the encoder's master playlist says, where the segments do not."""
    if told is None:
        return init
    if init.name:
        return replace(init, language=init.language or told["language"])
    kinds = ("audio",) if told["audio"] else init.kinds
    return replace(init, kinds=kinds, codecs=told["codecs"], width=told["width"], height=told["height"], language=told["language"])


def _since(index: TrackIndex, since: float, *, least: int) -> Sequence[Segment]:
    segments = index.segments
    if segments[0].end > since:
        return segments[:]
    first = len(segments)
    while first and segments[first - 1].end > since:
        first -= 1
    return segments[max(min(first, len(segments) - least), 0) :]

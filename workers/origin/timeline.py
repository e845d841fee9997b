"""The part of the recordings of a publishing point that is played: the live window, or everything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any, Final

from workers.media.captions.a53 import NO_CAPTIONS, CaptionServices
from workers.origin.limits import LEAST_SEGMENTS
from workers.origin.recordings import SessionRecording
from workers.origin.track_index import IndexedSegment, TrackIndex, TrackInit

_TOGETHER: Final = 3.0
"""Seconds, in addition to the length of a segment, for which the first segment of a recording waits for those of the other tracks.
"""
_BOTH: Final = {"video", "audio"}


@dataclass(frozen=True, slots=True)
class TrackPart:
    """The segments of one track of one recording. `ordinal` counts the recordings of the publishing point."""

    session: int
    ordinal: int
    epoch: float
    init: TrackInit
    segments: Sequence[IndexedSegment]


@dataclass(frozen=True, slots=True)
class OriginTrack:
    """A rendition. `init` is that of its latest part; `peak`, in bits per second, and `longest`, in seconds, cover all of its
    segments."""

    name: str
    init: TrackInit
    parts: Sequence[TrackPart]
    peak: float
    longest: float
    captions: CaptionServices = NO_CAPTIONS
    """The captions that the pictures of the track had in any part."""


@dataclass(frozen=True, slots=True)
class PointTimeline:
    """The tracks to play. `ended` is True if no more segments follow. `window` is None for everything."""

    tracks: Sequence[OriginTrack]
    ended: bool
    window: float | None


def timeline(recordings: Sequence[SessionRecording], *, window: float | None, archive: bool, now: float) -> PointTimeline | None:
    """Return the timeline; None if there is nothing to play. `window` is in seconds, and is used unless the encoder requested
    another one."""
    filled = [recording for recording in recordings if recording.filled and (_complete(recording) or _has_waited(recording, now))]
    if not filled:
        return None
    last = filled[-1]
    depth = None if archive else last.state.window or window
    since = float("-inf") if depth is None else max(recording.end for recording in filled) - depth
    names = dict.fromkeys(name for recording in (filled if archive else [last]) for name in recording.state.tracks)
    tracks = [track for name in names if (track := _track(name, filled, since)) is not None]
    return PointTimeline(tracks, last.ended and recordings[-1] is last, depth)


def _complete(recording: SessionRecording) -> bool:
    """Return True if every track that the encoder sends has a segment. A player reads the list of tracks once: a list with sound
    alone would give no picture until the page is reloaded."""
    filled = {name: track for name, track in recording.tracks.items() if track.segments}
    if recording.state.described:
        return recording.state.described.keys() <= filled.keys()
    if any(track.segments[0].source >= 0 for track in filled.values()):
        return False  # its master playlist may still come
    kinds = {kind for track in filled.values() if track.init is not None for kind in track.init.kinds}
    return filled.keys() == recording.tracks.keys() and kinds >= _BOTH


def _has_waited(recording: SessionRecording, now: float) -> bool:
    first = min(track.began for track in recording.tracks.values())
    longest = max(track.longest for track in recording.tracks.values())
    over = recording.state.ended is not None or all(track.ended for track in recording.tracks.values())
    return over or now - first >= _TOGETHER + longest


def _track(name: str, recordings: Sequence[SessionRecording], since: float) -> OriginTrack | None:
    pairs = [(each, index) for each in recordings if (index := each.tracks.get(name)) is not None and index.segments and index.init]
    if not pairs:
        return None
    parts = []
    for number, (recording, index) in enumerate(pairs):
        segments = _since(index, since, least=LEAST_SEGMENTS if number == len(pairs) - 1 else 0)
        if segments and index.init is not None:
            state = recording.state
            init = _apply_description(index.init, state.described.get(name))
            parts.append(TrackPart(state.session, state.ordinal, state.epoch or 0.0, init, segments))
    recording, latest = pairs[-1]
    peak = max(index.peak for _, index in pairs)
    init = _apply_description(latest.init or TrackInit(), recording.state.described.get(name))
    longest = max(index.longest for _, index in pairs)
    return OriginTrack(name, init, parts, peak, longest, reduce(or_, (index.captions for _, index in pairs), NO_CAPTIONS))


def all_captions(tracks: Iterable[OriginTrack]) -> CaptionServices:
    return reduce(or_, (track.captions for track in tracks), NO_CAPTIONS)


def _apply_description(init: TrackInit, description: Mapping[str, Any] | None) -> TrackInit:
    """Complete the initialization data by the descriptions of the encoder's master playlist."""
    if description is None:
        return init
    if init.name:
        return replace(init, language=init.language or description["language"])
    kinds = ("audio",) if description["audio"] else init.kinds
    return replace(
        init,
        kinds=kinds,
        codecs=description["codecs"],
        width=description["width"],
        height=description["height"],
        language=description["language"],
    )


def _since(index: TrackIndex, since: float, *, least: int) -> Sequence[IndexedSegment]:
    segments = index.segments
    if segments[0].end > since:
        return segments[:]
    first = len(segments)
    while first and segments[first - 1].end > since:
        first -= 1
    return segments[max(min(first, len(segments) - least), 0) :]

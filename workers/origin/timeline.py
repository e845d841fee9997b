"""The part of the recordings of a publishing point that is played: the live window, everything, or what a player selects."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import inf
from operator import or_
from typing import Any, Final

from workers.media.captions.a53 import NO_CAPTIONS, CaptionServices
from workers.origin.limits import LEAST_SEGMENTS
from workers.origin.recordings import SessionRecording
from workers.origin.selection import EVERYTHING, Selection
from workers.origin.track_index import IndexedSegment, TrackIndex, TrackInit

_TOGETHER: Final = 3.0
"""Seconds, in addition to the length of a segment, for which the first segment of a recording waits for those of the other tracks.
"""
_BOTH: Final = {"video", "audio"}
_LATE: Final = 30.0
"""Seconds after the end of a selection for which its last segments are waited for."""


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
    """A rendition. `init` is that of its latest part; `peak` and `mean`, in bits per second, and `longest`, in seconds, cover all
    of its segments."""

    name: str
    init: TrackInit
    parts: Sequence[TrackPart]
    peak: float
    longest: float
    mean: float = 0.0
    captions: CaptionServices = NO_CAPTIONS
    """The captions that the pictures of the track had in any part."""


@dataclass(frozen=True, slots=True)
class PointTimeline:
    """The tracks to play. `ended` is True if no more segments follow. `window` is None for everything. `begin` and `end` are the
    selected bounds as Unix times, which may be inside of segments."""

    tracks: Sequence[OriginTrack]
    ended: bool
    window: float | None
    begin: float | None = None
    end: float | None = None

    @property
    def start(self) -> float:
        """The time of the first segment."""
        return min(track.parts[0].segments[0].at for track in self.tracks)


def timeline(
    recordings: Sequence[SessionRecording],
    *,
    window: float | None,
    archive: bool,
    now: float,
    requested: float | None = None,
    earliest: float = -inf,
) -> PointTimeline | None:
    """Return the timeline; None if there is nothing to play. `window` is in seconds, and is used unless the encoder requested
    another one. A player may request another one still; where it is longer, it reaches back to `earliest`."""
    filled = [recording for recording in recordings if recording.filled and (_complete(recording) or _has_waited(recording, now))]
    if not filled:
        return None
    last = filled[-1]
    depth = None if archive else last.state.window or window
    end = max(recording.end for recording in filled)
    since = -inf if depth is None else end - depth
    if requested is not None and depth is not None:
        since = min(since, max(end - requested, earliest)) if requested > depth else end - requested
        depth = end - since
    names = dict.fromkeys(name for recording in (filled if archive else [last]) for name in recording.state.tracks)
    tracks = [track for name in names if (track := _track(name, filled, since)) is not None]
    return PointTimeline(tracks, last.ended and recordings[-1] is last, depth)


def selected(content: PointTimeline, selection: Selection, *, begin: float, end: float, now: float) -> PointTimeline | None:
    """Return the segments of a whole timeline that overlap the time from `begin` to `end`; None if there are none."""
    tracks = [track for each in content.tracks if (track := _cut(each, begin, end)) is not None]
    if not tracks:
        return None
    complete = all(track.parts[-1].segments[-1].end >= end for track in content.tracks) or now >= end + _LATE
    bounds = {"begin": begin if selection.begin.has_value else None, "end": end if selection.end.has_value else None}
    return PointTimeline(tracks, content.ended or complete, None, **bounds)


def _cut(track: OriginTrack, begin: float, end: float) -> OriginTrack | None:
    parts = []
    for part in track.parts:
        first = bisect_right(part.segments, begin, key=lambda segment: segment.end)
        last = bisect_left(part.segments, end, key=lambda segment: segment.at)
        if first < last:
            parts.append(replace(part, segments=part.segments[first:last]))
    return replace(track, parts=parts) if parts else None


def filtered(content: PointTimeline, selection: Selection) -> PointTimeline | None:
    """Return the timeline with the renditions that a selection accepts; None if there are none. If the limits of bit rates leave no
    picture, the closest one stays."""
    if selection is EVERYTHING:
        return content
    accepted = [track for track in content.tracks if selection.accepts(frozenset(track.init.kinds), track.mean)]
    pictures = [track for track in accepted if "video" in track.init.kinds]
    fitting = [track for track in pictures if selection.min_bitrate <= track.mean <= selection.max_bitrate]
    if pictures and not fitting:
        fitting = [min(pictures, key=lambda track: max(track.mean - selection.max_bitrate, selection.min_bitrate - track.mean))]
    tracks = [track for track in accepted if track in fitting or track not in pictures]
    return replace(content, tracks=tracks) if tracks else None


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
    lasts = sum(index.segments[-1].end - index.segments[0].at for _, index in pairs)
    mean = sum(index.size for _, index in pairs) * 8 / max(lasts, 0.001)
    return OriginTrack(name, init, parts, peak, longest, mean, reduce(or_, (index.captions for _, index in pairs), NO_CAPTIONS))


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

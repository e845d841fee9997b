"""DASH manifests of a source that is captured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from workers.job.workflows.capture.segments import LONGEST, CapturedSegment, Kind, MediaResource, SourceFault
from workers.media import dash
from workers.media.dash import DashSegment
from workers.media.errors import Unreadable

# The segments of one track of a DASH stream that moves on. Segments that its manifest no longer lists stay known.

_APART = 0.5


class DashTrack:
    """The segments of a track, identified by their URLs and counted here, since some manifests do not number them permanently."""

    def __init__(self, source: int, kind: Kind) -> None:
        self._source = source
        self._kind: Kind = kind
        self.segments: list[CapturedSegment] = []
        self.clocked = False
        self._listed: set[tuple[int, MediaResource]] = set()

    def restore(self, segments: Iterable[CapturedSegment], *, clocked: bool) -> None:
        """Restore the segments of an earlier run."""
        self.segments = sorted(segments, key=lambda segment: segment.at)
        self.clocked = clocked
        self._listed = {(segment.epoch, segment.resource) for segment in self.segments}

    def update(self, listed: Iterable[DashSegment], *, clocked: bool) -> bool:
        self.clocked = clocked
        before = len(self.segments)
        for entry in listed:
            if (entry.epoch, entry.resource) not in self._listed:
                self._listed.add((entry.epoch, entry.resource))
                self._add(entry)
        return len(self.segments) > before

    def _add(self, entry: DashSegment) -> None:
        if entry.lasts > LONGEST:
            raise SourceFault(f"A segment lasts more than {LONGEST:g} s.", final=True)
        last = self.segments[-1] if self.segments else None
        made = CapturedSegment(self._source, self._kind, entry.epoch, 0, entry.resource, entry.at, entry.lasts, entry.init)
        if last is not None:
            if entry.at < last.at + last.lasts * _APART:
                return  # an old manifest from a cache
            adjoins = entry.epoch == last.epoch and abs(entry.at - last.end) <= _APART * entry.lasts
            made = replace(made, sequence=last.sequence + (1 if adjoins else 2), breaks=entry.epoch != last.epoch)
        self.segments.append(made)


def parse(body: bytes, url: str, *, now: float) -> dash.Mpd:
    """Parse a manifest. Raises `SourceFault`."""
    try:
        return dash.parse(body, url, now=now)
    except Unreadable as fault:
        raise SourceFault(fault.sentence, final=True) from None

"""The segments of one track of a DASH stream that moves on: what its manifest listed before stays known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from workers.jobs.workflows.capture.segments import LONGEST, Kind, Resource, Segment, SourceFault
from workers.media.dash import ListedSegment

_APART = 0.5


class DashTrack:
    """Segments are known by their URLs and counted here: not every manifest counts them in a way that lasts."""

    def __init__(self, source: int, kind: Kind) -> None:
        self._source = source
        self._kind: Kind = kind
        self.segments: list[Segment] = []
        self.clocked = False
        self._known: set[tuple[int, Resource]] = set()

    def restore(self, segments: Iterable[Segment], *, clocked: bool) -> None:
        """What an earlier run knew."""
        self.segments = sorted(segments, key=lambda one: one.at)
        self.clocked = clocked
        self._known = {(one.epoch, one.resource) for one in self.segments}

    def update(self, listed: Iterable[ListedSegment], *, clocked: bool) -> bool:
        self.clocked = clocked
        before = len(self.segments)
        for one in listed:
            if (one.epoch, one.resource) not in self._known:
                self._known.add((one.epoch, one.resource))
                self._add(one)
        return len(self.segments) > before

    def _add(self, one: ListedSegment) -> None:
        if one.lasts > LONGEST:
            raise SourceFault(f"A segment lasts more than {LONGEST:g} s.", final=True)
        last = self.segments[-1] if self.segments else None
        made = Segment(self._source, self._kind, one.epoch, 0, one.resource, one.at, one.lasts, one.init)
        if last is not None:
            if one.at < last.at + last.lasts * _APART:
                return  # an old manifest, as caches give out
            adjoins = one.epoch == last.epoch and abs(one.at - last.end) <= _APART * one.lasts
            made = replace(made, sequence=last.sequence + (1 if adjoins else 2), breaks=one.epoch != last.epoch)
        self.segments.append(made)

"""Records the segments of a stream from its sources, until the end of the capture or until no source has more.

A separate task follows each source, so that one that stalls delays no other. Downloads are planned again whenever something has
changed: a segment that cannot be fetched is replaced by that of another source while it is still available.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

from domain.job.values import Severity
from domain.kernel.clock import system_clock
from workers.job.context import StepContext, StepFailed
from workers.job.workflows.capture.containers import Container
from workers.job.workflows.capture.downloads import Downloads
from workers.job.workflows.capture.fetcher import TRIES, Fetcher, task_fault
from workers.job.workflows.capture.parameters import CaptureRequest
from workers.job.workflows.capture.plan import CapturePlan, plan
from workers.job.workflows.capture.segments import CapturedSegment, Kind, SourceFault, shown_time
from workers.job.workflows.capture.shelf import Shelf
from workers.job.workflows.capture.streams import PATIENCE, CapturedStream, DashStream, HlsStream, open_stream

_SHORTEST: Final = 1.0


@dataclass
class SourceState:
    """The state of a source. `done` means that nothing more is expected of it. `fault` is its latest fault."""

    number: int
    url: str
    stream: CapturedStream | None = None
    loaded: bool = False
    tried: bool = False
    done: bool = False
    left_out: bool = False
    fault: str | None = None
    failures: int = 0
    moved: float = field(default_factory=monotonic)
    shift: float = 0.0
    """Seconds between its times and the clock, if it does not tell the time of day."""

    @property
    def tracks(self) -> Mapping[Kind, Sequence[CapturedSegment]]:
        return {} if self.stream is None or self.left_out or not self.loaded else self.stream.tracks

    @property
    def edge(self) -> float | None:
        """The time until which it has listed segments on each of its tracks; None without segments."""
        tracks = self.tracks
        return min(track[-1].end for track in tracks.values()) if tracks and all(tracks.values()) else None

    @property
    def stalled(self) -> bool:
        target = self.stream.target if self.stream is not None else 0.0
        return monotonic() - self.moved >= max(PATIENCE * target, _SHORTEST)

    @property
    def waiting(self) -> bool:
        """Return True if its next segment may come soon."""
        return not self.done and (not self.tried or (self.loaded and not self.failures and not self.stalled))

    def leave_out(self, why: str) -> None:
        self.fault, self.left_out, self.done = why, True, True


LONGEST: Final = 24 * 3600.0
MOST_SEGMENTS: Final = 50_000
_LOOK: Final = 0.25
_TAIL: Final = 0.5
"""Seconds after the end in which audio may come that belongs before it."""
_OTHERS: Final = 3.0
"""Seconds that sources may come later than the first one, if the start counts from the start of the stream."""
_NO_TIME: Final = (
    "It does not tell the time of day (EXT-X-PROGRAM-DATE-TIME), so start and end must be times from the start of the stream."
)
_KINDS: Final[tuple[Kind, ...]] = ("main", "audio")


@dataclass(frozen=True, slots=True)
class Recorded:
    """The result of a capture. `start` and `end` are times of the segments, seconds since 1970 if `clocked`."""

    plans: Mapping[Kind, CapturePlan]
    start: float
    end: float
    clocked: bool
    container: Container
    sources: tuple[SourceState, ...]


class Recorder:
    """The loop of one capture. Its times are those of the segments, which count from 1970 or from the start of the stream."""

    def __init__(self, context: StepContext[Any], request: CaptureRequest, downloads: Downloads, *, shelf: Shelf) -> None:
        self._context = context
        self._request = request
        self._downloads = downloads
        self._shelf = shelf
        self._earlier = shelf.take_over(context.previous)
        if self._earlier:
            context.log(f"Continuing with {len(self._earlier)} segments of the previous run.")
        self._sources = tuple(SourceState(number, url) for number, url in enumerate(request.sources, 1))
        self._changed = asyncio.Event()
        self._fetcher = Fetcher(downloads, shelf, context.workspace, on_given_up=self._give_up, on_fetched=self._count_fetched)
        self._have = 0.0
        self._whole = 1.0
        self._begun = monotonic()
        self._range = (request.start, request.end) if request.absolute else None

    async def record(self) -> Recorded:
        if self._range is not None and self._range[1] > _now() + LONGEST:
            raise StepFailed("The end of the capture is more than a day ahead.", final=True)
        coroutines = [self._fetcher.run(), *map(self._follow, self._sources)]
        tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
        try:
            return await self._record_until_whole(tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _record_until_whole(self, tasks: Sequence[asyncio.Task[None]]) -> Recorded:
        """Plan and fetch until the capture is complete, or no source has more.

        A plan takes time if there are many segments, so it is made again only if it could differ.
        """
        state: object = None
        plans: Mapping[Kind, CapturePlan] = {}
        while True:
            self._changed.clear()
            now = self._state()
            if now != state:
                state, plans = now, self._plans()
                self._fetch_all(plans)
            for fault in map(task_fault, tasks):
                if fault is not None:
                    raise fault
            if self._fetcher.idle and (_is_whole(plans) or all(source.done for source in self._sources)):
                return self._result(plans)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), _LOOK)

    def _state(self) -> object:
        """Return everything that a plan depends on."""
        listed = [
            (source.waiting, source.tried, source.left_out, [len(track) for track in source.tracks.values()])
            for source in self._sources
        ]
        return self._bounds(), listed, len(self._fetcher.unusable)

    def _result(self, plans: Mapping[Kind, CapturePlan]) -> Recorded:
        main = plans.get("main")
        if main is None or not main.used or self._range is None or self._fetcher.container is None:
            raise StepFailed(f"Nothing could be captured. {self._faults()}", final=self._is_final())
        start, end = self._range
        clocked = all(source.stream is not None and source.stream.clocked for source in self._sources if source.tracks)
        return Recorded(plans, start, end, clocked, self._fetcher.container, self._sources)

    def _faults(self) -> str:
        faults = [f"Source {source.number}: {source.fault or 'it has no segment of this time.'}" for source in self._sources]
        return " ".join(faults)

    def _is_final(self) -> bool:
        """Return True if another run would find the same: no source can be used, or none has anything of this time any more."""
        return (
            all(source.left_out or (source.loaded and not source.failures) for source in self._sources)
            and not self._fetcher.unusable
        )

    # --- sources

    async def _follow(self, source: SourceState) -> None:
        while not source.done:
            changed = False
            try:
                changed = await self._refresh(source)
                source.failures = 0
            except SourceFault as fault:
                self._note_fault(source, fault)
            source.tried = True
            if changed:
                source.moved = monotonic()
            self._judge(source)
            self._changed.set()
            await asyncio.sleep(self._pause(source, changed))

    async def _refresh(self, source: SourceState) -> bool:
        if source.stream is None:
            earlier = [segment for segment in self._earlier if segment.source == source.number]
            source.stream = await open_stream(source.number, source.url, downloads=self._downloads, earlier=earlier, clock=_now)
        changed = await source.stream.refresh()
        for jump in source.stream.take_jumps():
            jump_text = f"jumps by {jump.seconds:+.0f} s at {shown_time(jump.at, clocked=True)}"
            self._context.log(f"The clock of source {source.number} {jump_text}; time is counted on from before.", Severity.WARN)
        if not source.loaded:
            self._take_in(source)
        return changed

    def _take_in(self, source: SourceState) -> None:
        """Check, with the first playlist of a source, that it can be compared with the others."""
        stream = source.stream
        assert stream is not None
        others = [other for other in self._sources if other.tracks and other is not source]
        source.loaded = True
        if self._request.absolute and not stream.clocked:
            source.leave_out(_NO_TIME)
            return
        first = others[0].stream if others else None
        if first is None:
            pass
        elif set(first.tracks) != set(stream.tracks):
            source.leave_out("Its tracks differ from those of the previous source.")
        elif first.clocked != stream.clocked:
            source.leave_out("Only one of the sources tells the time of day, so they cannot be compared.")
        elif not stream.clocked and not _align(stream, first):
            source.leave_out("The numbers of its segments differ from those of the previous source, so they cannot be compared.")
        if not stream.clocked and source.edge is not None:
            source.shift = _now() - source.edge

    def _note_fault(self, source: SourceState, fault: SourceFault) -> None:
        source.failures += 1
        if source.failures == 1:
            self._context.log(f"Source {source.number}: {fault}", Severity.WARN)
        source.fault = str(fault)
        if (fault.final and not source.loaded) or (source.failures >= TRIES and self._is_over(source)):
            source.done = True
            source.left_out = source.left_out or (fault.final and not source.loaded)

    def _judge(self, source: SourceState) -> None:
        """Determine whether anything more is expected of the source."""
        if source.stream is None or source.done or source.failures or self._range is None:
            return
        edge = source.edge
        reached = edge is not None and edge >= self._range[1] + _TAIL
        source.done = source.stream.ended or reached or (source.stalled and self._is_over(source))

    def _is_over(self, source: SourceState) -> bool:
        return self._range is None or _now() - source.shift >= self._range[1]

    def _pause(self, source: SourceState, changed: bool) -> float:
        if source.failures or source.stream is None:
            return min(0.25 * 2.0**source.failures, 5.0)
        return source.stream.wait(changed)

    # --- segments

    def _plans(self) -> dict[Kind, CapturePlan]:
        bounds = self._bounds()
        if bounds is None:
            return {}
        waiting = {source.number for source in self._sources if source.waiting}
        plans: dict[Kind, CapturePlan] = {}
        for kind in _KINDS:
            lines = {source.number: source.tracks[kind] for source in self._sources if kind in source.tracks}
            if lines:
                late = {source.number: () for source in self._sources if source.number in waiting and not source.tried}
                plans[kind] = plan(
                    {**late, **lines}, start=bounds[0], end=bounds[1], unusable=self._fetcher.unusable, waiting=waiting
                )
        return plans

    def _bounds(self) -> tuple[float, float] | None:
        """Return the start and the end of the capture; None while they are unknown.

        Times from the start of the stream count from the first segment that any source had at first.
        """
        if self._range is None:
            begins = [source.tracks["main"][0].at for source in self._sources if source.tracks.get("main")]
            late = monotonic() - self._begun < _OTHERS and any(not source.tried for source in self._sources)
            if not begins or late:
                return None
            base = self._shelf.base
            if base is None:
                base = min(begins)
                self._shelf.note_base(base)
            self._range = (base + self._request.start, base + self._request.end)
            live = [source for source in self._sources if source.stream is not None and source.tracks and not source.stream.ended]
            if live and all(self._range[1] > _now() - source.shift + LONGEST for source in live):
                raise StepFailed("The end of the capture is more than a day ahead.", final=True)
            for source in self._sources:
                self._judge(source)
        return self._range

    def _fetch_all(self, plans: Mapping[Kind, CapturePlan]) -> None:
        used = [used_item.segment for kind in plans for used_item in plans[kind].used]
        used += [plan.tail for plan in plans.values() if plan.tail is not None]
        if len(used) > MOST_SEGMENTS:
            raise StepFailed(f"The capture has more than {MOST_SEGMENTS} segments.", final=True)
        self._fetcher.want(used)
        self._have = sum(used_item.lasts for used_item in used if self._shelf.has(used_item.name))
        if self._range is not None:
            self._whole = len(plans) * (self._range[1] - self._range[0])

    def _count_fetched(self, segment: CapturedSegment) -> None:
        self._have += segment.lasts
        self._context.progress(min(self._have / self._whole, 1.0), f"{self._have:.0f} s")
        if self._fetcher.idle:
            self._changed.set()

    def _give_up(self, segment: CapturedSegment, fault: SourceFault) -> None:
        source = self._sources[segment.source - 1]
        source.fault = f"segment {segment.sequence}: {fault}"
        self._context.log(f"Source {source.number}: {source.fault}", Severity.WARN)
        self._changed.set()


def _is_whole(plans: Mapping[Kind, CapturePlan]) -> bool:
    """Return True if nothing is missing, not even the segment after the end, which may contain the last audio."""
    whole = bool(plans) and all(plan.complete and not plan.gaps for plan in plans.values())
    return whole and ("audio" in plans or plans["main"].tail is not None)


def _align(stream: object, first: object) -> bool:
    """Return True if two streams without a clock can be compared.

    HLS streams are compared by the numbers of their segments; the times of DASH streams are those of their media.
    """
    if isinstance(stream, HlsStream) and isinstance(first, HlsStream):
        return stream.align(first)
    return isinstance(stream, DashStream) and isinstance(first, DashStream)


def _now() -> float:
    return system_clock().timestamp()

"""The playlists, manifests and states of publishing points for players and health checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final, TypeVar

from cachetools import LRUCache

from workers.origin import dash, hls, state_pages
from workers.origin.limits import LEAST_SEGMENTS
from workers.origin.recordings import Points
from workers.origin.selection import EVERYTHING, Selection
from workers.origin.state_pages import PagePointState
from workers.origin.timeline import PointTimeline, filtered, selected, timeline

T = TypeVar("T")
_Times = LRUCache[str, tuple[float, float]]
"""A time of each publishing point, and the time until which the cached value is valid."""
_THREADS: Final = 4
_FRESH: Final = 1.0
_GRACE: Final = 30.0
"""Seconds that a player may be behind its playlist."""
_POINTS: Final = 1000


@dataclass(frozen=True, slots=True)
class PlaybackView:
    """The requested part of a publishing point. `up` is the relative path from the playlist back to the publishing point; `query`
    is added to the addresses in it. `parts` are the times that the reader may play, as Unix times; None for all."""

    archive: bool
    up: str
    query: str = ""
    selection: Selection = EVERYTHING
    parts: Sequence[tuple[float, float]] | None = None

    @property
    def further(self) -> str:
        """The query of addresses of further playlists."""
        own = self.selection.query
        return f"{self.query}&{own}" if self.query and own else self.query or (f"?{own}" if own else "")


class Playback:
    """Renders publishing points. `window` is the DVR window in seconds if the encoder has requested none. The methods return None
    if nothing has that name."""

    def __init__(self, points: Points, *, window: float, clock: Callable[[], float]) -> None:
        self._points = points
        self._window = window
        self._clock = clock
        self._since: _Times = LRUCache(_POINTS)
        self._revoked: _Times = LRUCache(_POINTS)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="playback")

    async def master(self, point: str, view: PlaybackView) -> str | None:
        return await self._view(point, view, partial(hls.master, query=view.further))

    async def media(self, point: str, view: PlaybackView, *, track: str) -> str | None:
        return await self._view(point, view, partial(hls.media, name=track, up=view.up, query=view.query))

    async def manifest(self, point: str, view: PlaybackView) -> str | None:
        return await self._view(point, view, partial(dash.manifest, up=view.up, query=view.query, now=self._clock()))

    async def state(self, point: str) -> PagePointState | None:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._state, point)

    async def live_since(self, point: str) -> float:
        """Return the Unix time at which the first segment arrived that may be played live; earlier ones belong to the whole
        recording only. The value is up to a second old: it only grows."""
        return await self._read_cached(self._since, point, self._live_since)

    async def revoked(self, point: str) -> float:
        """Return the Unix time until which tokens were revoked. The value is up to a second old."""
        return await self._read_cached(self._revoked, point, self._revoked_until)

    async def _read_cached(self, cache: _Times, point: str, read: Callable[[str], float]) -> float:
        value, until = cache.get(point, (inf, -inf))
        if until <= self._clock():
            value = await asyncio.get_running_loop().run_in_executor(self._threads, read, point)
            cache[point] = value, self._clock() + _FRESH
        return value

    def _revoked_until(self, point: str) -> float:
        state = self._points.get(point).state()
        return 0.0 if state is None else state.revoked

    def _live_since(self, point: str) -> float:
        filled = [recording for recording in self._points.get(point).recordings() if recording.filled]
        if not filled:
            return inf
        longest = max(track.longest for track in filled[-1].tracks.values())
        return filled[-1].written - (filled[-1].state.window or self._window) - max(_GRACE, LEAST_SEGMENTS * longest)

    async def _view(self, point: str, view: PlaybackView, render: Callable[[PointTimeline], T]) -> T | None:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._render, point, view, render)

    def _render(self, point: str, view: PlaybackView, render: Callable[[PointTimeline], T]) -> T | None:
        content = self._content(point, view)
        content = None if content is None else filtered(content, view.selection)
        return None if content is None else render(content)

    def _content(self, point: str, view: PlaybackView) -> PointTimeline | None:
        selection, now, recordings = view.selection, self._clock(), self._points.get(point).recordings()
        parts = view.parts or ((-inf, inf),)
        if not selection.bounded:
            depth, since = (None if view.archive else selection.window), parts[-1][0]
            return timeline(recordings, window=self._window, archive=view.archive, now=now, requested=depth, earliest=since)
        content = timeline(recordings, window=None, archive=True, now=now)
        if content is None:
            return None
        begin, end = selection.bounds(max(content.start, parts[-1][0]))
        part = next((part for part in parts if part[0] <= begin < part[1]), None) or next(
            (part for part in parts if begin < part[1] and part[0] < end), None
        )
        if part is None:
            return None
        return selected(content, selection, begin=max(begin, part[0]), end=min(end, part[1]), now=now)

    def _state(self, point: str) -> PagePointState | None:
        publishing_point = self._points.get(point)
        recordings = publishing_point.recordings()
        if not recordings and publishing_point.state() is None:
            return None
        return state_pages.state(recordings, now=self._clock())

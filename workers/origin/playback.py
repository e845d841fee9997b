"""What players and health checks get of the publishing points."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final, TypeVar

from cachetools import LRUCache

from workers.origin import dash, hls, state_pages
from workers.origin.limits import LEAST_SEGMENTS
from workers.origin.recordings import Points
from workers.origin.state_pages import State
from workers.origin.timeline import Timeline, timeline

T = TypeVar("T")
_Times = LRUCache[str, tuple[float, float]]
"""A time of each publishing point, and until when it is taken from here."""
_THREADS: Final = 4
_FRESH: Final = 1.0
_GRACE: Final = 30.0
"""Seconds that a player may be behind its playlist."""
_POINTS: Final = 1000


@dataclass(frozen=True, slots=True)
class View:
    """Which part of a publishing point is asked for. `up` leads from the playlist back to the publishing point; `query` is
    added to the addresses in it."""

    archive: bool
    up: str
    query: str = ""


class Playback:
    """`window` is the DVR window in seconds where the encoder has asked for none. None: there is nothing of that name."""

    def __init__(self, points: Points, *, window: float, clock: Callable[[], float]) -> None:
        self._points = points
        self._window = window
        self._clock = clock
        self._since: _Times = LRUCache(_POINTS)
        self._revoked: _Times = LRUCache(_POINTS)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="playback")

    async def master(self, point: str, view: View) -> str | None:
        return await self._of(point, view, partial(hls.master, query=view.query))

    async def media(self, point: str, view: View, *, track: str) -> str | None:
        return await self._of(point, view, partial(hls.media, name=track, up=view.up, query=view.query))

    async def manifest(self, point: str, view: View) -> str | None:
        return await self._of(point, view, partial(dash.manifest, up=view.up, query=view.query, now=self._clock()))

    async def state(self, point: str) -> State | None:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._state, point)

    async def live_since(self, point: str) -> float:
        """When the first segment came that may be played live, a Unix time; earlier ones belong to the whole recording alone. At
        most a second old: it only grows."""
        return await self._remembered(self._since, point, self._live_since)

    async def revoked(self, point: str) -> float:
        """Until when tokens were made void, a Unix time. At most a second old."""
        return await self._remembered(self._revoked, point, self._revoked_until)

    async def _remembered(self, known: _Times, point: str, read: Callable[[str], float]) -> float:
        found, until = known.get(point, (inf, -inf))
        if until <= self._clock():
            found = await asyncio.get_running_loop().run_in_executor(self._threads, read, point)
            known[point] = found, self._clock() + _FRESH
        return found

    def _revoked_until(self, point: str) -> float:
        state = self._points.get(point).state()
        return 0.0 if state is None else state.revoked

    def _live_since(self, point: str) -> float:
        filled = [one for one in self._points.get(point).recordings() if one.filled]
        if not filled:
            return inf
        longest = max(track.longest for track in filled[-1].tracks.values())
        return filled[-1].written - (filled[-1].state.window or self._window) - max(_GRACE, LEAST_SEGMENTS * longest)

    async def _of(self, point: str, view: View, render: Callable[[Timeline], T]) -> T | None:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._rendered, point, view, render)

    def _rendered(self, point: str, view: View, render: Callable[[Timeline], T]) -> T | None:
        found = timeline(self._points.get(point).recordings(), window=self._window, archive=view.archive, now=self._clock())
        return None if found is None else render(found)

    def _state(self, point: str) -> State | None:
        known = self._points.get(point)
        recordings = known.recordings()
        if not recordings and known.state() is None:
            return None
        return state_pages.state(recordings, now=self._clock())

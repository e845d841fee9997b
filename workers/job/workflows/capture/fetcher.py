"""Downloads the requested segments in order, several at a time, and checks that they are complete."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from workers.job.context import StepFailed
from workers.job.workflows.capture.containers import Container, check_initialization, container
from workers.job.workflows.capture.downloads import Downloads
from workers.job.workflows.capture.segments import CapturedSegment, MediaResource, SourceFault
from workers.job.workflows.capture.shelf import Shelf

TRIES: Final = 3
_AT_ONCE: Final = 6
_LONGEST_WAIT: Final = 10.0
"""Seconds. A segment may be listed a little before it is available, particularly if the clock of the origin is behind."""


class Fetcher:
    """Downloads segments.

    `unusable` are the names of segments that cannot be fetched. `on_given_up` is called with each of them and the reason,
    `on_fetched` with the others.
    """

    def __init__(
        self,
        downloads: Downloads,
        shelf: Shelf,
        folder: Path,
        *,
        on_given_up: Callable[[CapturedSegment, SourceFault], None],
        on_fetched: Callable[[CapturedSegment], None],
    ) -> None:
        self._downloads = downloads
        self._shelf = shelf
        self._folder = folder
        self._on_given_up = on_given_up
        self._on_fetched = on_fetched
        self._queue: asyncio.Queue[CapturedSegment] = asyncio.Queue()
        self._queued: set[str] = set()
        self._initializations: dict[str, asyncio.Lock] = {}
        self.container: Container | None = None
        self.unusable: set[str] = set()

    @property
    def idle(self) -> bool:
        return not self._queued

    def want(self, segments: Iterable[CapturedSegment]) -> None:
        for segment in segments:
            if self._shelf.has(segment.name):
                self.container = self.container or container(self._shelf.path(segment.name))
            elif segment.name not in self._queued and segment.name not in self.unusable:
                self._queued.add(segment.name)
                self._queue.put_nowait(segment)

    async def run(self) -> None:
        """Download until it is cancelled, or a limit of the whole capture is reached."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            segment = await self._queue.get()
            fault = await self._fetch(segment)
            self._queued.discard(segment.name)
            if fault is None:
                self._on_fetched(segment)
            else:
                self.unusable.add(segment.name)
                self._on_given_up(segment, fault)

    async def _fetch(self, segment: CapturedSegment) -> SourceFault | None:
        for attempt in range(1, TRIES + 1):
            try:
                await self._get(segment)
            except SourceFault as fault:
                if fault.final or attempt == TRIES:
                    return fault
            else:
                return None
            await asyncio.sleep(max(0.25 * 2**attempt, min(segment.lasts, _LONGEST_WAIT) / 2 * attempt))
        return None

    async def _get(self, segment: CapturedSegment) -> None:
        made = self._folder / f"part-{segment.name}"
        await self._downloads.file(segment.resource, made)
        format_ = await asyncio.to_thread(container, made)
        if (self.container or format_) != format_ or (format_ == "mp4") != (segment.init is not None):
            raise SourceFault("its segments have another format than the others", final=True)
        if segment.init is not None:
            await self._initialize(segment.init)
        self.container = format_
        self._shelf.put(made, segment.name, segment)

    async def _initialize(self, init: MediaResource) -> None:
        async with self._initializations.setdefault(init.digest, asyncio.Lock()):
            if not self._shelf.has(init.digest):
                made = self._folder / f"part-{init.digest}"
                await self._downloads.file(init, made)
                check_initialization(made)
                self._shelf.put(made, init.digest)


def task_fault(task: asyncio.Task[None]) -> BaseException | None:
    """Return the fault that ended a task; None if it is running or was cancelled.

    If it is a group of faults, the failure of the step is returned if there is one.
    """
    fault = task.exception() if task.done() and not task.cancelled() else None
    if isinstance(fault, BaseExceptionGroup):
        first: BaseException = fault.exceptions[0]
        fault = next((exception for exception in fault.exceptions if isinstance(exception, StepFailed)), first)
    if isinstance(fault, OSError):
        return StepFailed(f"The download cannot be written: {fault.strerror}.")
    return fault

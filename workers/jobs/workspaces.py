"""How what a run made comes to its place. Issue 7, "no step's result published twice"; ADR 0021.

A run's folder lies below the media root, so publishing is a rename. Which run's files are published is decided in the job's events
before any of them is moved; moving them is then only carried out, by whoever comes to it, and again without harm.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path

from domain.job.values import Output
from projections.queue.claims import Run
from workers.jobs.places import JOBS, Places


class OutputMissing(OSError):
    """A file that was to be published is neither in its workspace nor in its place."""


class Workspaces:
    """The folders of all jobs below one media root. Everything that may take long is done beside the event loop."""

    def __init__(self, root: Path) -> None:
        self.root = root

    async def publish(self, run: Run, outputs: Iterable[Output]) -> None:
        """Put each file in its place. One that is there already was put there before. Raises `OSError`, `Outside`."""
        await asyncio.to_thread(self._publish, run, list(outputs))

    async def discard(self, run: Run) -> None:
        """A run's own folder; the next run of the task has taken from it what it could use."""
        await self._remove(Places(self.root, run.job).workspace(run.task, run.run))

    async def discard_runs(self, run: Run) -> None:
        """Those of all runs of its task, which is done."""
        await self._remove(Places(self.root, run.job).workspace(run.task, run.run).parent)

    async def remove(self, jobs: Collection[int]) -> None:
        """All that these jobs left."""
        for job in jobs:
            await self._remove(self.root / JOBS / str(job))

    async def _remove(self, folder: Path) -> None:
        if _is_there(folder):  # most steps of most jobs leave none
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def jobs(self) -> list[int]:
        """Those that have a folder."""
        return await asyncio.to_thread(self._jobs)

    def _jobs(self) -> list[int]:
        try:
            return [int(name) for name in os.listdir(self.root / JOBS) if name.isascii() and name.isdigit()]
        except FileNotFoundError:
            return []

    def _publish(self, run: Run, outputs: list[Output]) -> None:
        places, folders = Places(self.root, run.job), set[Path]()
        _forestall(places, run)
        for output in outputs:
            made, named = places.workspace(run.task, run.run) / output.path, places.found(output.name)
            named.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.replace(made, named)
            except FileNotFoundError:
                if not named.exists() or named.stat().st_size != output.size:
                    raise OutputMissing(f"{output.name} is neither in its workspace nor in its place") from None
            folders.add(named.parent)
        for folder in folders:
            _sync(folder)


def _forestall(places: Places, run: Run) -> None:
    """A worker that was frozen while it published an earlier run, whose job was broken off and resumed since, finds nothing left to
    move."""
    for number in range(1, run.run):
        shutil.rmtree(places.workspace(run.task, number), ignore_errors=True)


def _is_there(folder: Path) -> bool:
    return folder.exists()


def _sync(folder: Path) -> None:
    """A rename is on disk when its folder is."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

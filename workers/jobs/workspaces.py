"""Workspaces: the folders of runs, and how their files are published. ADR 0021.

A run's folder lies below the media root, so publishing is a rename. An event of the job says which run's files are published before
any of them is moved. The move can be repeated without harm, by any worker.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path

from domain.job.values import Output
from projections.job.queue import Run
from workers.jobs.media_paths import JOBS, MediaPaths
from workers.jobs.publishers import Publishers


class OutputMissing(OSError):
    """A file to publish is neither in its workspace nor in its place."""


class Workspaces:
    """The folders of all jobs below one media root. Slow file operations run in threads."""

    def __init__(self, root: Path) -> None:
        self.root = root

    async def publish(self, run: Run, outputs: Iterable[Output], *, client: str) -> None:
        """Move each file to its place, unless an earlier call did; all or none of them where another client has published one.
        Raises `OSError`, `PathEscape`, `PublishedByAnother`."""
        await asyncio.to_thread(self._publish, run, list(outputs), client)

    async def discard(self, run: Run) -> None:
        """Delete the folder of a run; the next run of the task has copied from it what it could use."""
        await self._remove(MediaPaths(self.root, run.job).workspace(run.task, run.run))

    async def discard_runs(self, run: Run) -> None:
        """Delete the folders of all runs of its task, which is completed."""
        await self._remove(MediaPaths(self.root, run.job).workspace(run.task, run.run).parent)

    async def remove(self, jobs: Collection[int]) -> None:
        """Delete the folders of these jobs."""
        for job in jobs:
            await self._remove(self.root / JOBS / str(job))

    async def _remove(self, folder: Path) -> None:
        if _is_there(folder):  # most jobs have no folder
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def jobs(self) -> list[int]:
        """Jobs that have a folder."""
        return await asyncio.to_thread(self._jobs)

    def _jobs(self) -> list[int]:
        try:
            return [int(name) for name in os.listdir(self.root / JOBS) if name.isascii() and name.isdigit()]
        except FileNotFoundError:
            return []

    def _publish(self, run: Run, outputs: list[Output], client: str) -> None:
        places, folders = MediaPaths(self.root, run.job), set[Path]()
        _discard_older_runs(places, run)
        publishers = Publishers(self.root)
        for output in outputs:
            if not output.name.startswith(f"{JOBS}/"):
                publishers.claim(places.found(output.name), client, name=output.name)
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


def _discard_older_runs(places: MediaPaths, run: Run) -> None:
    """Delete workspaces of earlier runs so that a stale worker cannot publish them."""
    for number in range(1, run.run):
        shutil.rmtree(places.workspace(run.task, number), ignore_errors=True)


def _is_there(folder: Path) -> bool:
    return folder.exists()


def _sync(folder: Path) -> None:
    """A rename is durable when its folder is synced."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

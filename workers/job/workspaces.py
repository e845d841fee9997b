"""Workspaces: the folders of runs, and how their files are published. ADR 0021.

A run's folder is below the media root, so publishing is a rename. An event of the job records which run's files are published
before any of them is moved. The move can be repeated without harm, by any worker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final, Protocol

from domain.job.values import Output
from projections.job.queue import QueuedRun
from workers.job import folders
from workers.job.media_paths import JOBS, MediaPaths
from workers.job.publishers import Publishers, outputs_to_claim
from workers.kernel.shortage import SHORTAGES

_SHORTAGE_SECONDS: Final = 1.0

_log = logging.getLogger(__name__)


class OutputMissing(OSError):
    """Raised when a file to publish is neither in its workspace nor in its place."""


class RunFiles(Protocol):
    """The files of runs until they are published: below the media root (`Workspaces`), or here and in a bucket
    (`BucketWorkspaces`)."""

    async def stage(self, run: QueuedRun, outputs: Iterable[Output]) -> None:
        """Take the files to where any worker can publish them, before the job decides that they are its result."""
        ...

    async def publish(self, run: QueuedRun, outputs: Iterable[Output], *, client: str) -> None: ...

    async def has_files(self, run: QueuedRun) -> bool:
        """Return True if the folder of the run, on this machine, is not empty."""
        ...

    async def discard(self, run: QueuedRun) -> None: ...

    async def discard_runs(self, run: QueuedRun) -> None: ...

    async def remove(self, jobs: Collection[int]) -> None: ...

    async def withdraw(self, jobs: Collection[int]) -> None:
        """Remove the files of these jobs. After it no run of these jobs publishes anything, whatever is under way. Raises what
        prevents that."""
        ...

    async def jobs(self) -> list[int]: ...

    async def tidy(self) -> None:
        """Delete files that belong to no known job."""
        ...


class Workspaces:
    """The folders of all jobs below one media root. Slow file operations run in threads."""

    def __init__(self, root: Path) -> None:
        self.root = root

    async def stage(self, run: QueuedRun, outputs: Iterable[Output]) -> None:
        """Do nothing: the files are where each worker sees them."""

    async def tidy(self) -> None:
        """Do nothing: every folder has the number of a job."""

    async def publish(self, run: QueuedRun, outputs: Iterable[Output], *, client: str) -> None:
        """Move each file to its place, unless an earlier call did. If another client has published one of the files, none is moved.

        In a shortage of the machine it waits. Raises `OSError`, `PathEscape` and `PublishedByAnother`.
        """
        chosen = list(outputs)
        while True:
            try:
                return await asyncio.to_thread(self._publish, run, chosen, client)
            except OSError as fault:
                if fault.errno not in SHORTAGES:
                    raise
                _log.warning("job %d: its files wait to be moved to their places: %s", run.job, fault.strerror)
                await asyncio.sleep(_SHORTAGE_SECONDS)

    async def has_files(self, run: QueuedRun) -> bool:
        return await asyncio.to_thread(_has_files, MediaPaths(self.root, run.job).workspace(run.task, run.run))

    async def discard(self, run: QueuedRun) -> None:
        """Delete the folder of a run; a later run of the task has copied the files that it could use."""
        await self._remove(MediaPaths(self.root, run.job).workspace(run.task, run.run))

    async def discard_runs(self, run: QueuedRun) -> None:
        """Delete the folders of all runs of its task, which is completed."""
        await self._remove(MediaPaths(self.root, run.job).workspace(run.task, run.run).parent)

    async def remove(self, jobs: Collection[int]) -> None:
        """Delete the folders of these jobs."""
        for job in jobs:
            await self._remove(self.root / JOBS / str(job))

    async def withdraw(self, jobs: Collection[int]) -> None:
        await self.remove(jobs)

    async def _remove(self, folder: Path) -> None:
        if _is_there(folder):  # most jobs have no folder
            await asyncio.to_thread(folders.remove, self.root, self._parts(folder))

    def _parts(self, path: Path) -> Sequence[str]:
        return path.relative_to(self.root).parts

    async def jobs(self) -> list[int]:
        """Return the jobs that have a folder."""
        return await asyncio.to_thread(folders.numeric_names, self.root / JOBS)

    def _publish(self, run: QueuedRun, outputs: list[Output], client: str) -> None:
        places, root, changed = MediaPaths(self.root, run.job), self.root.resolve(), set[Path]()
        for number in range(1, run.run):  # so that a stale worker cannot publish them
            folders.remove(self.root, self._parts(places.workspace(run.task, number)))
        publishers = Publishers(self.root)
        workspace = places.workspace(run.task, run.run)
        for output in outputs_to_claim(outputs):
            publishers.claim(places.resolve(output.name), client, source=self._parts(workspace / output.path), name=output.name)
        for output in outputs:
            source = self._parts(workspace / output.path)
            target = places.resolve(output.name)
            try:
                folders.publish(root, source, target_parts=target.relative_to(root).parts)
            except FileNotFoundError:
                if not target.exists() or target.stat().st_size != output.size:
                    raise OutputMissing(f"{output.name} is neither in its workspace nor in its place") from None
                folders.finish_publishing(root, target.relative_to(root).parts)
            changed.add(target.parent)
        for folder in changed:
            folders.sync(root, folder.relative_to(root).parts)


def _is_there(folder: Path) -> bool:
    return folder.exists()


def _has_files(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except OSError:
        return False

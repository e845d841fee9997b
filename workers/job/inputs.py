"""Inputs of steps from a bucket: fetched by the worker, since most steps have no network, and read by the steps on this machine.

    .inputs/<job>/<hash of path and version>/<name>

The account of steps may not write there. A file that is in its place is complete, and has the version that its folder is named
after.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from hashlib import sha256
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import Any, Final

from domain.kernel.errors import Unavailable
from domain.kernel.ids import new_id
from workers.job import folders
from workers.job.download_limits import DownloadLimitReached, DownloadWatch
from workers.job.protocol import Answer, StepListener
from workers.ports.buckets import ObjectStore, StoredObject
from workers.ports.outbound import DEFAULT_LIMITS, DownloadLimits

INPUTS: Final = ".inputs"
Progress = Callable[[float], None]
_AGAIN_SECONDS: Final = 2.0

_log = logging.getLogger(__name__)


class Inputs:
    """The files that were fetched from a bucket. `root` is the folder in which steps work on this machine."""

    def __init__(self, root: Path, store: ObjectStore, *, limits: DownloadLimits = DEFAULT_LIMITS) -> None:
        self._root = root
        self.store = store
        self._limits = limits

    async def fetch(self, job: int, name: str, *, progress: Progress) -> Path:
        """Fetch a file and return its path on this machine; nothing exists there if the bucket has no such file.

        Raises `Unavailable`, `DownloadLimitReached` and `OSError`.
        """
        stored = await self.store.head(name)
        version = sha256(f"{name}\0{stored.etag if stored else ''}".encode()).hexdigest()[:32]
        parts = (INPUTS, str(job), version)
        path = self._root.joinpath(*parts, name.rpartition("/")[2])
        if stored is not None and not await asyncio.to_thread(path.is_file):
            await self._copy(stored, parts, path.name, progress)
        return path

    async def jobs(self) -> list[int]:
        """Return the jobs for which files were fetched."""
        return await asyncio.to_thread(folders.numeric_names, self._root / INPUTS)

    async def remove(self, jobs: Collection[int]) -> None:
        for job in jobs:
            await asyncio.to_thread(folders.remove, self._root, (INPUTS, str(job)))

    async def _copy(self, stored: StoredObject, parts: tuple[str, ...], name: str, progress: Progress) -> None:
        watch, temporary = DownloadWatch(self._limits, self._root), f".{new_id().hex}"
        watch.begin(0)
        watch.expects(0, stored.size)
        with folders.folder(self._root, parts, make=True) as folder:
            try:
                # A thread may still write when this is cancelled. The file waits for it, or refuses; a bare descriptor could be
                # that of another file by then.
                with BufferedWriter(FileIO(os.open(temporary, folders.NEW_FILE, 0o600, dir_fd=folder), "wb")) as file:
                    got = 0
                    async for piece in self.store.pieces(stored.key, etag=stored.etag, start=0, size=stored.size):
                        watch.took(len(piece))
                        await asyncio.to_thread(file.write, piece)
                        got += len(piece)
                        progress(got / stored.size)
                    await asyncio.to_thread(file.flush)
                    folders.open_to_group(file.fileno(), os.fstat(folder).st_gid)
                    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)


def provider(inputs: Inputs, job: int, *, listener: StepListener) -> Answer:
    """Make the answer that provides the files that a run of this job reads: its `path` on this machine, or a `fault`."""

    def report(part: float) -> None:
        listener.progress(0, f"fetching: {part:.0%}")

    async def fetch(question: Mapping[str, Any]) -> Mapping[str, Any]:
        while True:
            try:
                return {"path": str(await inputs.fetch(job, str(question.get("name")), progress=report))}
            except Unavailable as away:
                _log.warning("job %d: a step waits for the media store: %s", job, away)
            except DownloadLimitReached as reached:
                return {"fault": str(reached), "final": reached.final}
            except Exception as fault:  # of any kind: the step would wait for ever
                return {"fault": f"The file cannot be fetched: {fault}", "final": False}
            await asyncio.sleep(_AGAIN_SECONDS)

    return fetch

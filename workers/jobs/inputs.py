"""Inputs of steps from a bucket: fetched by the worker, since most steps have no network, and read by the steps on this machine.

    .inputs/<job>/<hash of path and version>/<name>

The account of steps may not write there. A file that is in its place is whole, and of the version that its folder stands for.
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
from workers.bucket_ports import ObjectStore, StoredObject
from workers.jobs import folders
from workers.jobs.download_limits import DownloadLimitReached, DownloadWatch
from workers.jobs.protocol import Answer, StepListener
from workers.ports import DEFAULT_LIMITS, DownloadLimits

INPUTS: Final = ".inputs"
Progress = Callable[[float], None]
_AGAIN_SECONDS: Final = 2.0

_log = logging.getLogger(__name__)


class Inputs:
    """`root` is where steps work on this machine."""

    def __init__(self, root: Path, store: ObjectStore, *, limits: DownloadLimits = DEFAULT_LIMITS) -> None:
        self._root = root
        self.store = store
        self._limits = limits

    async def fetch(self, job: int, name: str, *, progress: Progress) -> Path:
        """The path of the file on this machine; nothing is there where there is none in the bucket. Raises `Unavailable`,
        `DownloadLimitReached`, `OSError`."""
        found = await self.store.head(name)
        version = sha256(f"{name}\0{found.etag if found else ''}".encode()).hexdigest()[:32]
        parts = (INPUTS, str(job), version)
        path = self._root.joinpath(*parts, name.rpartition("/")[2])
        if found is not None and not await asyncio.to_thread(path.is_file):
            await self._copy(found, parts, path.name, progress)
        return path

    async def jobs(self) -> list[int]:
        """Jobs for which something was fetched."""
        return await asyncio.to_thread(folders.numbered, self._root / INPUTS)

    async def remove(self, jobs: Collection[int]) -> None:
        for job in jobs:
            await asyncio.to_thread(folders.remove, self._root, (INPUTS, str(job)))

    async def _copy(self, found: StoredObject, parts: tuple[str, ...], name: str, progress: Progress) -> None:
        watch, made = DownloadWatch(self._limits, self._root), f".{new_id().hex}"
        watch.begin(0)
        watch.expects(0, found.size)
        with folders.folder(self._root, parts, make=True) as folder:
            try:
                # A thread may still write when this is cancelled. The file waits for it, or refuses; a bare descriptor could be
                # that of another file by then.
                with BufferedWriter(FileIO(os.open(made, folders.NEW_FILE, 0o600, dir_fd=folder), "wb")) as file:
                    got = 0
                    async for piece in self.store.pieces(found.key, etag=found.etag, start=0, size=found.size):
                        watch.took(len(piece))
                        await asyncio.to_thread(file.write, piece)
                        got += len(piece)
                        progress(got / found.size)
                    await asyncio.to_thread(file.flush)
                    folders.open_to_group(file.fileno(), os.fstat(folder).st_gid)
                    os.replace(made, name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(made, dir_fd=folder)


def provider(inputs: Inputs, job: int, *, listener: StepListener) -> Answer:
    """Provides the files that a run of this job reads: the answer has the `path` on this machine, or a `fault`."""

    def tell(part: float) -> None:
        listener.progress(0, f"fetching: {part:.0%}")

    async def fetch(question: Mapping[str, Any]) -> Mapping[str, Any]:
        while True:
            try:
                return {"path": str(await inputs.fetch(job, str(question.get("name")), progress=tell))}
            except Unavailable as away:
                _log.warning("job %d: a step waits for the media store: %s", job, away)
            except DownloadLimitReached as reached:
                return {"fault": str(reached), "final": reached.final}
            except Exception as fault:  # whatever it is: the step would wait for ever
                return {"fault": f"The file cannot be fetched: {fault}", "final": False}
            await asyncio.sleep(_AGAIN_SECONDS)

    return fetch

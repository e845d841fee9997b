"""Workspaces on this machine whose files are published in a bucket. ADR 0051.

    <content_id>/...                     published
    .jobs/<job>/files/<name>             kept for later steps of the same job
    .jobs/<job>/<task>/<run>.json        the uploads of a run that are not completed yet
    .published/<hash of the path>        the client that publishes it, and the runs that may still do so

A run's files are uploaded in parts before the job decides that they are its result. An upload is invisible until it is completed.
That is done after the decision, by any worker, and only once: a worker that comes later finds no upload.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Final, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from domain.job.values import Output
from domain.kernel.clock import Clock
from domain.kernel.errors import Unavailable
from domain.kernel.ids import new_id
from projections.job.queue import QueuedRun
from projections.kernel.sizes import MIB
from workers.job import folders
from workers.job.inputs import Inputs
from workers.job.media_paths import JOBS, MediaPaths
from workers.job.publishers import PublishedByAnother, PublisherNote, outputs_to_claim
from workers.job.workspaces import OutputMissing, Workspaces
from workers.ports.buckets import Completion, ObjectStore

T = TypeVar("T")

_PART: Final = 16 * MIB
_MOST_PARTS: Final = 10_000
_AT_ONCE: Final = 4
"""Files of a run that are uploaded at the same time."""
_AGAIN_SECONDS: Final = 2.0
_STALE: Final = timedelta(days=7)
"""The age at which an upload that no run completes is ended."""
_LARGEST_NOTE: Final = 16 * MIB
_RUN: Final = re.compile(rf"{re.escape(JOBS)}/\d+/\d+/\d+\.json", re.ASCII)

_log = logging.getLogger(__name__)


class BucketWorkspaces:
    """Publishes the files of runs in a bucket.

    `local` has the folders of runs on this machine, `inputs` the files that were fetched for them. Transfers wait while the store
    does not answer.
    """

    def __init__(
        self, local: Workspaces, store: ObjectStore, *, inputs: Inputs, clock: Clock, again_seconds: float = _AGAIN_SECONDS
    ) -> None:
        self._local = local
        self._store = store
        self._inputs = inputs
        self._clock = clock
        self._again_seconds = again_seconds
        self._in_store: set[int] = set()
        """Jobs that have something in the bucket, as far as this worker knows."""

    async def stage(self, run: QueuedRun, outputs: Iterable[Output]) -> None:
        """Upload the files, so that any worker can publish them. Raises `OSError`."""
        chosen = list(outputs)
        await self._retry_until_available(lambda: self._stage(run, chosen), run)

    async def publish(self, run: QueuedRun, outputs: Iterable[Output], *, client: str) -> None:
        """Complete the uploads in their order, unless an earlier call did. If another client has published one of the files, none
        is completed.

        Raises `OSError` and `PublishedByAnother`.
        """
        chosen = list(outputs)
        await self._retry_until_available(lambda: self._publish(run, chosen, client), run)

    async def has_files(self, run: QueuedRun) -> bool:
        return await self._local.has_files(run)

    async def discard(self, run: QueuedRun) -> None:
        await self._local.discard(run)
        if run.job in self._in_store:
            await _try_or_leave(self._end_uploads(run))

    async def discard_runs(self, run: QueuedRun) -> None:
        await self._local.discard_runs(run)
        if run.job in self._in_store:
            for number in range(1, run.run + 1):
                await _try_or_leave(self._end_uploads(run._replace(run=number)))

    async def remove(self, jobs: Collection[int]) -> None:
        await self._local.remove(jobs)
        await self._inputs.remove(jobs)
        for job in self._in_store.intersection(jobs):
            await _try_or_leave(self._remove(job))

    async def withdraw(self, jobs: Collection[int]) -> None:
        """End the uploads of these jobs, which can then no longer be completed, and remove their files."""
        for job in jobs:
            await self._remove(job)
        await self.remove(jobs)

    async def jobs(self) -> list[int]:
        names = await self._store.folders(f"{JOBS}/")
        numbers = {int(name) for name in names if name.isascii() and name.isdigit()}
        self._in_store |= numbers
        return sorted(numbers.union(await self._local.jobs(), await self._inputs.jobs()))

    async def tidy(self) -> None:
        """End uploads for which no run has a note any more: their worker died before it could write one."""
        for key, upload, begun in await self._store.uploads():
            if begun < self._clock() - _STALE:
                await self._store.end_upload(key, upload)

    async def _stage(self, run: QueuedRun, outputs: list[Output]) -> None:
        """Upload the files from the start; the uploads of an earlier attempt are deleted."""
        self._in_store.add(run.job)
        await self._end_uploads(run)
        uploads = {
            output.name: _Upload(await self._store.begin_upload(output.name, sha256=output.sha256), []) for output in outputs
        }
        await self._store.put(_note(run), _UPLOADS.dump_json(uploads))
        places = asyncio.Semaphore(_AT_ONCE)

        async def upload(output: Output) -> None:
            async with places:
                uploads[output.name][1].extend(await self._upload(run, output, uploads[output.name][0]))

        ends = await asyncio.gather(*map(upload, outputs), return_exceptions=True)
        for fault in filter(None, ends):
            raise fault
        await self._store.put(_note(run), _UPLOADS.dump_json(uploads))

    async def _upload(self, run: QueuedRun, output: Output, upload: str) -> list[str]:
        """Upload a file, and return the entity tags of its parts. A file that differs from its declaration is refused."""
        local_file = MediaPaths(self._local.root, run.job).workspace(run.task, run.run) / output.path
        file = await asyncio.to_thread(folders.open_output, self._local.root, local_file.relative_to(self._local.root).parts)
        size = max(_PART, -(-output.size // _MOST_PARTS))
        digest, tags = sha256(), list[str]()
        try:
            for at in range(0, output.size or 1, size):
                content = await asyncio.to_thread(os.pread, file, size, at)
                await asyncio.to_thread(digest.update, content)
                tags.append(await self._store.upload_part(output.name, upload, number=len(tags) + 1, content=content))
        finally:
            os.close(file)
        if digest.hexdigest() != output.sha256.lower():
            raise OutputMissing(f"{output.name} is not the file that the step declared")
        return tags

    async def _publish(self, run: QueuedRun, outputs: list[Output], client: str) -> None:
        self._in_store.add(run.job)
        for number in range(1, run.run):  # so that a stale worker cannot publish them
            await self._end_uploads(run._replace(run=number))
        uploads = await self._uploads_of(run)
        claimed = {output.name: await self._claim(run, output.name, client) for output in outputs_to_claim(outputs)}
        waiting = {output.name: upload for output in outputs if (upload := uploads.get(output.name)) is not None and upload.parts}
        await self._check_places([output for output in outputs if output.name not in waiting], frozenset())
        completed = {
            name for name, upload in waiting.items() if await self._complete(run, name, upload, claimed.get(name), client=client)
        }
        await self._check_places([output for output in outputs if output.name in waiting], completed)
        await self._store.delete([_note(run)])

    async def _complete(self, run: QueuedRun, name: str, upload: _Upload, etag: str | None, *, client: str) -> bool:
        """Complete an upload; return False if there is no such upload.

        The object in its place is replaced only if it is the one with the tag `seen`, which it had when the place was claimed.
        """
        while True:
            end = await self._store.complete_upload(name, upload.id, parts=upload.parts, instead_of=etag)
            if end is not Completion.CHANGED:
                return end is Completion.DONE
            etag = await self._claim(run, name, client)

    async def _check_places(self, outputs: Sequence[Output], completed: Collection[str]) -> None:
        """Check that the outputs are in their places. A gateway may report that an upload is completed while it still copies its
        parts."""
        places = asyncio.Semaphore(_AT_ONCE)

        async def look(output: Output) -> None:
            async with places:
                there = await self._store.head(output.name)
            if there is None or (there.size, there.sha256) != (output.size, output.sha256):
                if output.name in completed:
                    raise Unavailable(f"{output.name} is not in its place yet")
                raise OutputMissing(f"{output.name} is neither uploaded nor in its place")

        await asyncio.gather(*map(look, outputs))

    async def _claim(self, run: QueuedRun, name: str, client: str) -> str:
        """Claim a place, and return the entity tag of the object that may be replaced there; empty if no object may be there."""
        digits = sha256(name.encode()).hexdigest()
        note, runs = f".published/{digits[:2]}/{digits}", (_note(run),)
        while True:
            if await self._store.put(note, PublisherNote(client, runs, new_id().hex).content, instead_of=""):
                return ""
            last_note = await self._store.get(note, limit=_LARGEST_NOTE)
            if last_note is None:
                continue
            last, etag = PublisherNote.read(last_note[0]), last_note[1]
            pending = [source for source in last.sources if await self._store.head(source) is not None]
            there = await self._tag(name)  # read after the pending ones: an upload completed meanwhile is in its place
            if last.client != client and (pending or there):
                raise PublishedByAnother(name)
            if last.client == client and runs[0] in last.sources:
                return there
            if await self._store.put(note, PublisherNote(client, (*pending, *runs), new_id().hex).content, instead_of=etag):
                return there

    async def _tag(self, name: str) -> str:
        stored = await self._store.head(name)
        return "" if stored is None else stored.etag

    async def _end_uploads(self, run: QueuedRun) -> None:
        uploads = await self._uploads_of(run)
        for name, (upload, _) in uploads.items():
            await self._store.end_upload(name, upload)
        if uploads:
            await self._store.delete([_note(run)])

    async def _uploads_of(self, run: QueuedRun) -> Mapping[str, _Upload]:
        return _read(await self._store.get(_note(run), limit=_LARGEST_NOTE))

    async def _remove(self, job: int) -> None:
        while objects := await self._store.list(f"{JOBS}/{job}/", limit=1000):
            for stored in objects:
                if _RUN.fullmatch(stored.key):  # a file that a step keeps may have any other name
                    for name, (upload, _) in _read(await self._store.get(stored.key, limit=_LARGEST_NOTE)).items():
                        await self._store.end_upload(name, upload)
            await self._store.delete([stored.key for stored in objects])
        self._in_store.discard(job)

    async def _retry_until_available(self, act: Callable[[], Awaitable[T]], run: QueuedRun) -> T:
        while True:
            try:
                return await act()
            except Unavailable as away:
                _log.warning("job %d: its files wait for the media store: %s", run.job, away)
            await asyncio.sleep(self._again_seconds)


class _Upload(NamedTuple):
    """The id of an upload, and the entity tags of its parts when all are uploaded."""

    id: str
    parts: list[str]


_UPLOADS: Final = TypeAdapter(dict[str, _Upload])
"""The uploads by the names of the outputs."""


def _note(run: QueuedRun) -> str:
    return f"{JOBS}/{run.job}/{run.task}/{run.run}.json"


def _read(note: tuple[bytes, str] | None) -> Mapping[str, _Upload]:
    try:
        return {} if note is None else _UPLOADS.validate_json(note[0])
    except ValidationError:
        return {}


async def _try_or_leave(work: Awaitable[None]) -> None:
    """Do the work, or leave it to housekeeping if it cannot be done now."""
    try:
        await work
    except (Unavailable, OSError) as fault:
        _log.info("files of a job in the media store are deleted later: %s", fault)

"""Semaphores: addresses that must answer 2xx or 3xx before a job is queued (`sempahore_url`). ADR 0021.

An address may never answer. So the semaphores of one client can take some of the connections, and only one of them while they do
not answer quickly: a few clients whose semaphores hang do not delay the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, Final

from domain.job.aggregate import Job
from domain.job.values import Semaphore, Severity
from domain.kernel.clock import Clock
from domain.kernel.errors import DecryptionFailed, Unavailable
from projections.job.due_jobs import DueJob, DueJobs
from projections.job.log_lines import JobLogLine, write
from projections.kernel.background_task import start_task
from projections.kernel.database.database import Database
from projections.vault.vault import Vault
from workers.ports.outbound import Outbound, OutboundFailed, OutboundRefused

PLACES: Final = 64
PLACES_EACH: Final = 4
"""Places of a client whose last request was answered within `QUICK` seconds; other clients have one place."""
QUICK: Final = 3.0
SECONDS: Final = 10.0
NO_TASK: Final = 0
"""The task number of log lines that belong to no task."""

_log = logging.getLogger(__name__)

Opened = Callable[[DueJob], Coroutine[Any, Any, None]]


class SemaphoreProbe:
    """Requests one semaphore, and writes to the job's log why it is closed."""

    def __init__(self, database: Database, outbound: Outbound, *, vault: Vault, clock: Clock) -> None:
        self._database = database
        self._outbound = outbound
        self._vault = vault
        self._clock = clock

    async def check(self, job: int, semaphore: Semaphore) -> str | None:
        """Return the reason why the semaphore is closed, in one sentence without secrets; None if it is open."""
        try:
            url = await self._address(job, semaphore)
            answer = await self._outbound.request("GET", url, seconds=SECONDS, most=1)
        except DecryptionFailed:
            return "The address cannot be opened with the present master key."
        except (OutboundRefused, OutboundFailed) as fault:
            return str(fault)
        return None if 200 <= answer.status < 400 else f"The answer was {answer.status}."

    async def log_reason(self, job: int, semaphore: Semaphore, *, why: str) -> None:
        message = f"Waiting for the semaphore {semaphore.url}: {why}"
        await write(self._database, lines=[JobLogLine(job, NO_TASK, Severity.INFO, message, self._clock())], progress=())

    async def _address(self, job: int, semaphore: Semaphore) -> str:
        if semaphore.sealed_url is None:
            return semaphore.url
        opened = await self._vault.read(semaphore.sealed_url.reference, owner=Job.stream(job))
        if opened is None:
            raise DecryptionFailed(f"the secret {semaphore.sealed_url.reference}")
        return opened


@dataclass(slots=True)
class _Closed:
    """A job whose semaphore is closed.

    `asked` is the time of the last request, of `monotonic`; `why` is the reason that was written last.
    """

    due: DueJob
    asked: float = float("-inf")
    why: str = ""


class SemaphorePoller:
    """Requests the semaphores of jobs that are due, repeatedly. `opened` is called for a job whose semaphore is open."""

    def __init__(self, jobs: DueJobs, probe: SemaphoreProbe, *, opened: Opened, ended: Callable[[], None]) -> None:
        self._jobs = jobs
        self._probe = probe
        self._opened = opened
        self._ended = ended
        self._closed: dict[int, _Closed] = {}
        self._asking: dict[int, asyncio.Task[None]] = {}
        self._quick: set[str] = set()

    @property
    def in_progress(self) -> int:
        return len(self._asking)

    def versions(self) -> Mapping[int, int]:
        """Return the version of each waiting job, by job."""
        return {job: closed.due.version for job, closed in self._closed.items()}

    def add(self, due: DueJob) -> None:
        """Add a new or changed job. The semaphore of a changed one is requested at once."""
        before = self._closed.get(due.job)
        self._closed[due.job] = _Closed(due, why=before.why if before is not None and before.due.semaphore == due.semaphore else "")

    def ask(self, intervals: Mapping[str, float]) -> None:
        """Request due semaphores, the longest waiting first, within the limits of connections.

        `intervals` are seconds by client; a client without one is skipped.
        """
        now = monotonic()
        busy = Counter(self._closed[job].due.client for job in self._asking if job in self._closed)
        ready = (closed for job, closed in self._closed.items() if job not in self._asking and _is_due(closed, intervals, now))
        for closed in sorted(ready, key=lambda closed: closed.asked):
            if len(self._asking) >= PLACES:
                return
            if busy[closed.due.client] < (PLACES_EACH if closed.due.client in self._quick else 1):
                busy[closed.due.client] += 1
                task = start_task(self._ask(closed), what="semaphores")
                self._asking[closed.due.job] = task
                task.add_done_callback(partial(self._end_request, closed))

    async def forget(self) -> None:
        """Stop all requests, because another member is active now."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        self._closed.clear()

    async def _ask(self, closed: _Closed) -> None:
        begun = monotonic()
        try:
            await self._ask_once(closed)
            if monotonic() - begun < QUICK:
                self._quick.add(closed.due.client)
            else:
                self._quick.discard(closed.due.client)
        except Unavailable as fault:
            _log.info("the semaphore of job %d is requested again: %s", closed.due.job, fault)
        except Exception:
            _log.exception("the semaphore of job %d: the request failed; it is repeated", closed.due.job)

    def _end_request(self, closed: _Closed, _: asyncio.Task[None]) -> None:
        closed.asked = monotonic()
        del self._asking[closed.due.job]
        self._ended()

    async def _ask_once(self, closed: _Closed) -> None:
        """Request the semaphore of a job that has not changed. A job that changed meanwhile is added again with its new version."""
        now = await self._jobs.still(closed.due.job)
        if now is None or now.semaphore is None or now.version != closed.due.version:
            self._drop(closed)
            return
        why = await self._probe.check(now.job, now.semaphore)
        if why is None:
            await self._opened(now)
            self._drop(closed)
        elif why != closed.why:
            await self._probe.log_reason(now.job, now.semaphore, why=why)
            closed.why = why

    def _drop(self, closed: _Closed) -> None:
        if self._closed.get(closed.due.job) is closed:
            del self._closed[closed.due.job]


def _is_due(closed: _Closed, intervals: Mapping[str, float], now: float) -> bool:
    return closed.due.client in intervals and now - closed.asked >= intervals[closed.due.client]

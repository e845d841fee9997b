"""Gates: addresses that must answer 2xx or 3xx before a job may be queued (`sempahore_url`). Issue 7, "Controller"; ADR 0021.

Whoever gave the address may let it hang, so one client's gates can take some of the places and never all of them.
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

from domain.job.values import Gate, Severity
from domain.kernel.clock import Clock
from domain.kernel.errors import Unavailable
from domain.kernel.sealed import Unsealable
from projections.kernel.database import Database
from projections.queue.chronicle import Line, write
from projections.queue.due import Due, DueJobs
from projections.vault.vault import Vault
from workers.ports import Outbound, OutboundFailed, OutboundRefused

PLACES: Final = 16
PLACES_EACH: Final = 4
SECONDS: Final = 10.0
NO_TASK: Final = 0
"""The task of a line that the engine itself writes."""

_log = logging.getLogger(__name__)

Opened = Callable[[Due], Coroutine[Any, Any, None]]


class Watchman:
    """Asks one gate, and says in the job's log why it stays shut."""

    def __init__(self, database: Database, outbound: Outbound, *, vault: Vault, clock: Clock) -> None:
        self._database = database
        self._outbound = outbound
        self._vault = vault
        self._clock = clock

    async def why_shut(self, gate: Gate) -> str | None:
        """One sentence without secrets; None when it is open."""
        try:
            url = await self._address(gate)
            answer = await self._outbound.request("GET", url, seconds=SECONDS, most=1)
        except Unsealable:
            return "The address cannot be opened with the present master key."
        except (OutboundRefused, OutboundFailed) as fault:
            return str(fault)
        return None if 200 <= answer.status < 400 else f"The answer was {answer.status}."

    async def say(self, job: int, gate: Gate, *, why: str) -> None:
        message = f"Waiting for the gate {gate.url}: {why}"
        await write(self._database, lines=[Line(job, NO_TASK, Severity.INFO, message, self._clock())], progress=())

    async def _address(self, gate: Gate) -> str:
        if gate.sealed_url is None:
            return gate.url
        opened = await self._vault.opened(gate.sealed_url.reference)
        if opened is None:
            raise Unsealable(str(gate.sealed_url.reference))
        return opened


@dataclass(slots=True)
class _Shut:
    """A job at its gate. `asked` is when it was asked last, in seconds of `monotonic`; `why` is what was last said of it."""

    due: Due
    asked: float = float("-inf")
    why: str = ""


class Gates:
    """The jobs that are due but for their gates, and who asks for them. `opened` is told of a job whose gate is open."""

    def __init__(self, jobs: DueJobs, watchman: Watchman, *, opened: Opened, ended: Callable[[], None]) -> None:
        self._jobs = jobs
        self._watchman = watchman
        self._opened = opened
        self._ended = ended
        self._shut: dict[int, _Shut] = {}
        self._asking: dict[int, asyncio.Task[None]] = {}

    @property
    def under_way(self) -> int:
        return len(self._asking)

    def known(self) -> Mapping[int, int]:
        """Version by job."""
        return {job: one.due.version for job, one in self._shut.items()}

    def add(self, due: Due) -> None:
        """It is new, or has been changed: then it is asked for at once, whatever was found before."""
        before = self._shut.get(due.job)
        self._shut[due.job] = _Shut(due, why=before.why if before is not None and before.due.gate == due.gate else "")

    def ask(self, intervals: Mapping[str, float]) -> None:
        """Of the clients with an interval, those that were asked for longest ago, as far as there are places."""
        now = monotonic()
        busy = Counter(self._shut[job].due.client for job in self._asking if job in self._shut)
        ready = (one for job, one in self._shut.items() if job not in self._asking and _is_due(one, intervals, now))
        for one in sorted(ready, key=lambda one: one.asked):
            if len(self._asking) >= PLACES:
                return
            if busy[one.due.client] < PLACES_EACH:
                busy[one.due.client] += 1
                task = asyncio.create_task(self._ask(one), name=f"gate of job {one.due.job}")
                self._asking[one.due.job] = task
                task.add_done_callback(partial(self._asked, one))

    async def forget(self) -> None:
        """Somebody else looks after them from now on."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        self._shut.clear()

    async def _ask(self, one: _Shut) -> None:
        try:
            await self._ask_once(one)
        except Unavailable as fault:
            _log.info("the gate of job %d is asked again: %s", one.due.job, fault)
        except Exception:
            _log.exception("the gate of job %d: failed; it is asked again", one.due.job)

    def _asked(self, one: _Shut, _: asyncio.Task[None]) -> None:
        one.asked = monotonic()
        del self._asking[one.due.job]
        self._ended()

    async def _ask_once(self, one: _Shut) -> None:
        """Changed meanwhile, it comes again under its new version."""
        now = await self._jobs.still(one.due.job)
        if now is None or now.gate is None or now.version != one.due.version:
            self._drop(one)
            return
        why = await self._watchman.why_shut(now.gate)
        if why is None:
            await self._opened(now)
            self._drop(one)
        elif why != one.why:
            await self._watchman.say(now.job, now.gate, why=why)
            one.why = why

    def _drop(self, one: _Shut) -> None:
        if self._shut.get(one.due.job) is one:
            del self._shut[one.due.job]


def _is_due(one: _Shut, intervals: Mapping[str, float], now: float) -> bool:
    return one.due.client in intervals and now - one.asked >= intervals[one.due.client]

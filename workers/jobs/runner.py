"""The runner: takes tasks that are ready, has their steps run, and keeps their leases. Issue 7, "Runner"; ADR 0021.

Heartbeats come from this process's event loop; steps run in processes of their own, so a step that hangs or hogs does not stop
them. A runner that was frozen finds its leases run out: it stops its steps before it does anything else, and of what it still says
nothing is written.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from domain.job.commands import ExpireLease, InterruptTask
from domain.job.values import Fenced
from domain.kernel.errors import NotFound, Unavailable
from projections.consumers.shares import Shares
from projections.queue.claims import Claimed, Run, TaskQueue
from workers.jobs.conductor import Conductor
from workers.kernel.again import again
from workers.kernel.wake import LONG_REST, REST, Sleeper, rest

_SEEN: Final = 2.0
_LOOK: Final = 0.05
_OFTEN: Final = 4

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Held:
    """`until`, of `time.monotonic`: up to then nobody else has it."""

    claimed: Claimed
    until: float
    task: asyncio.Task[None] = field(init=False)


class Runner:
    """One process's part of a queue. `steps` is how many run at a time; `drain` how many seconds they get to end by
    themselves when it is asked to stop."""

    def __init__(
        self,
        queue: TaskQueue,
        conductor: Conductor,
        *,
        name: str,
        presence: Shares,
        sleeper: Sleeper,
        watcher: Sleeper,
        asked_to_end: Callable[[], None],
        steps: int,
        drain: float,
    ) -> None:
        self._queue = queue
        self._conductor = conductor
        self._name = name
        self._presence = presence
        self._sleeper = sleeper
        self._watcher = watcher
        self._asked_to_end = asked_to_end
        self._steps = steps
        self._drain = drain
        self._held: dict[Run, _Held] = {}
        self._done: list[Run] = []
        self._vain = 0
        self._stopping = False
        self._taking: asyncio.Task[None]
        self._keeping: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        what = f"runner of {self._name}"
        self._taking = asyncio.create_task(again(self._take, what=what, until=lambda: self._stopping))
        rounds = (self._beat, self._watch, self._rescue, self._appear)
        self._keeping = [asyncio.create_task(again(work, what=what)) for work in rounds]

    async def stop(self) -> None:
        """Nothing new is taken. What runs may end within `drain` seconds; what does not is given back and counts as no attempt."""
        self._stopping = True
        self._sleeper.wake()
        await self._taking  # not cancelled: what it has claimed must be known
        running = [held.task for held in self._held.values()]
        if running:
            self._asked_to_end()
            await asyncio.wait(running, timeout=self._drain)
        await self._give_back()
        for task in self._keeping:
            task.cancel()
        await asyncio.gather(*self._keeping, return_exceptions=True)
        with suppress(Unavailable):
            await self._presence.leave()

    async def _give_back(self) -> None:
        left = list(self._held.values())
        for held in left:
            held.task.cancel()
        await asyncio.gather(*(held.task for held in left), return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._drain):
                for held in left:
                    run = held.claimed.run
                    with suppress(Fenced, NotFound):
                        await self._conductor.tell(InterruptTask(run.job, run.task, run.run), held.claimed.transaction_id)
                await self._release()

    # --- taking tasks and having them done

    async def _take(self) -> None:
        """What comes while it rests is taken in one go; one who mostly looks in vain, since others are quicker, rests longer."""
        free = self._steps - len(self._held)
        if free > 0:
            begun = time.monotonic()
            claimed = await self._queue.claim([self._name], limit=free)
            for one in claimed:
                self._begin(one, until=begun + self._queue.lease)
            self._vain = 0 if claimed else self._vain + 1
            pause = REST if len(claimed) == free else rest(len(claimed))
            await asyncio.sleep(pause if self._vain < _OFTEN else LONG_REST)
            if claimed:
                return
        if not await self._sleeper.sleep():
            self._vain = 0

    def _begin(self, claimed: Claimed, *, until: float) -> None:
        held = self._held[claimed.run] = _Held(claimed, until)
        held.task = asyncio.create_task(self._conduct(claimed), name=f"run {claimed.run}")

    async def _conduct(self, claimed: Claimed) -> None:
        run = claimed.run
        try:
            await self._conductor.conduct(claimed)
        except (Fenced, NotFound) as fault:
            _log.info("%s; what it made is thrown away", fault)
        except Exception:
            _log.exception("run %d of task %d of job %d cannot be carried on; its lease will expire", run.run, run.task, run.job)
        finally:
            if self._held.pop(run, None) is not None:
                self._done.append(run)
            self._sleeper.wake()  # there is room, and perhaps a task that came after this one

    # --- keeping what is held

    async def _beat(self) -> None:
        """A third of a lease apart. What cannot be renewed in time is not ours any more."""
        await asyncio.sleep(self._queue.lease / 3)
        await self._release()
        asked = time.monotonic()
        held = list(self._held)
        if not held:
            return
        renewed = await self._queue.renew(held)
        for run in held:
            kept = self._held.get(run)
            if kept is None:
                continue
            if run in renewed:
                kept.until = asked + self._queue.lease
            else:
                self._drop(run, "its lease was lost")

    async def _watch(self) -> None:
        """What was broken off is stopped at once, and what we could not keep."""
        await self._watcher.sleep()
        now = time.monotonic()
        for run, held in list(self._held.items()):
            if now >= held.until:
                self._drop(run, "its lease could not be kept")
        stepping = [run for run in self._held if self._conductor.is_stepping(run)]
        if stepping:
            present = await self._queue.present(stepping)
            for run in stepping:
                if run not in present and self._conductor.is_stepping(run):
                    self._drop(run, "its job does not wait for it any more")
        await asyncio.sleep(_LOOK)

    def _drop(self, run: Run, why: str) -> None:
        held = self._held.pop(run, None)
        if held is not None:
            _log.warning("run %d of task %d of job %d is stopped: %s", run.run, run.task, run.job, why)
            held.task.cancel()
            self._done.append(run)

    async def _release(self) -> None:
        done, self._done = self._done, []
        if done:
            try:
                await self._queue.release(done)
            except Unavailable:
                self._done += done
                raise

    # --- for others

    async def _rescue(self) -> None:
        """Whoever's runs they were: their workers have not been heard of."""
        await asyncio.sleep(self._queue.lease / 6)
        for one in await self._queue.expired():
            retries = await self._conductor.retries(one.client)
            with suppress(NotFound):
                await self._conductor.tell(ExpireLease(one.run.job, one.run.task, one.run.run, retries), one.transaction_id)

    async def _appear(self) -> None:
        await self._presence.hold(busy=len(self._held))
        await asyncio.sleep(_SEEN)

"""The tasks that a worker may start, in memory: pure state, without a database or a clock.

It may be out of date at any moment, in both directions. A task that is not ready any more is refused by its job when it is started;
a missing one is found by the next look at the view.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from heapq import heappop, heappush
from typing import Final, Generic, NamedTuple, TypeVar

from projections.job.queue import ReadyTask

BORROWED_AFTER: Final = 0.05
"""Seconds that work waits for its owner before a worker with a free place starts it."""
K = TypeVar("K", bound=Hashable)
MOST: Final = 10_000
"""The largest number of tasks in memory. Beyond that, the view is read again."""


class Urgency(NamedTuple):
    """The order in which tasks are started: the lowest first."""

    priority: int
    job: int
    task: int


class _TimedTask(NamedTuple):
    ready: ReadyTask
    due_at: float


def urgency(ready: ReadyTask) -> Urgency:
    return Urgency(ready.priority, ready.run.job, ready.run.task)


class ReadyTasks:
    """The ready tasks of the shards that a worker owns, the most urgent first. Times are of one clock that never runs backwards."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._shards: Collection[int] = ()
        self._tasks: dict[tuple[int, int], _TimedTask] = {}
        self._of_job: dict[int, set[int]] = {}
        self._of_client = Counter[str]()
        self._order: list[tuple[Urgency, float]] = []
        self._later: list[tuple[float, Urgency]] = []

    def __len__(self) -> int:
        return len(self._tasks)

    def own(self, shards: Collection[int]) -> None:
        """Keep tasks of these shards only."""
        self._shards = frozenset(shards)
        for timed in list(self._tasks.values()):
            if timed.ready.shard not in self._shards:
                self._drop(timed.ready.run.job, timed.ready.run.task)

    def put(self, tasks: Iterable[ReadyTask], *, now: float) -> None:
        """Add tasks, or update those that are in memory."""
        for ready in tasks:
            key, existing = ready.run[:2], self._tasks.get(ready.run[:2])
            same = existing is not None and existing.ready._replace(due_in=0.0) == ready._replace(due_in=0.0)
            if same and existing is not None and existing.due_at <= now + ready.due_in:
                continue
            if ready.shard in self._shards and (existing is not None or len(self._tasks) < self._most):
                self._of_client[ready.client] += existing is None
                self._tasks[key] = _TimedTask(ready, now + ready.due_in)
                self._of_job.setdefault(ready.run.job, set()).add(ready.run.task)
                heappush(self._later, (now + ready.due_in, urgency(ready)))

    def replace(self, jobs: Iterable[int], tasks: Iterable[ReadyTask], *, now: float) -> None:
        """Replace the tasks of these jobs: `tasks` are all of their ready tasks."""
        for job in jobs:
            for task in list(self._of_job.get(job, ())):
                self._drop(job, task)
        self.put(tasks, now=now)

    def first(self, now: float) -> ReadyTask | None:
        """Return the most urgent task that is due, without removing it; None if no task is due."""
        while self._later and self._later[0][0] <= now:
            due_at, order = heappop(self._later)
            heappush(self._order, (order, due_at))
        while self._order:
            order, due_at = self._order[0]
            timed = self._tasks.get((order.job, order.task))
            if timed is not None and (urgency(timed.ready), timed.due_at) == (order, due_at):
                return timed.ready
            heappop(self._order)  # replaced or dropped meanwhile
        return None

    def take(self, now: float) -> ReadyTask | None:
        """Remove the most urgent task that is due, and return it; None if no task is due."""
        ready = self.first(now)
        if ready is not None:
            self._drop(ready.run.job, ready.run.task)
        return ready

    def take_of_others(self, client: str, now: float) -> ReadyTask | None:
        """Remove the most urgent due task of another client, and return it; None if there is none."""
        if len(self._tasks) == self._of_client.get(client, 0):
            return None
        due = [timed.ready for timed in self._tasks.values() if timed.ready.client != client and timed.due_at <= now]
        ready = min(due, key=urgency, default=None)
        if ready is not None:
            self._drop(ready.run.job, ready.run.task)
        return ready

    def due_in(self, now: float) -> float | None:
        """Return the seconds until another task is due; None if none is expected."""
        while self._later:
            due_at, order = self._later[0]
            timed = self._tasks.get((order.job, order.task))
            if timed is not None and timed.due_at == due_at:
                return max(due_at - now, 0.0)
            heappop(self._later)
        return None

    def _drop(self, job: int, task: int) -> None:
        client = self._tasks.pop((job, task)).ready.client
        self._of_client[client] -= 1
        if not self._of_client[client]:
            del self._of_client[client]
        self._of_job[job].discard(task)
        if not self._of_job[job]:
            del self._of_job[job]


class OverdueKeys(Generic[K]):
    """Finds work of other members that has not been started for a while: keys that are present in every look for that time."""

    def __init__(self, seconds: float = BORROWED_AFTER) -> None:
        self._seconds = seconds
        self._since: dict[K, float] = {}

    def update(self, keys: Iterable[K], *, now: float) -> set[K]:
        """Take the keys that are present now, and return those that have been present long enough. Absent keys are forgotten."""
        self._since = {key: self._since.get(key, now) for key in keys}
        return {key for key, since in self._since.items() if now - since >= self._seconds}

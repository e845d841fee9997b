"""The tasks that a worker may start, in memory: pure state, without a database or a clock.

It may be out of date at any moment, in both directions. A task that is not ready any more is refused by its job when it is started;
one that is missing is found by the next look at the view.
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
"""Tasks that are kept. Beyond that the view is looked at again."""


class Urgency(NamedTuple):
    """The order in which tasks are started: the lowest first."""

    priority: int
    job: int
    task: int


class _Kept(NamedTuple):
    ready: ReadyTask
    due_at: float


def urgency(ready: ReadyTask) -> Urgency:
    return Urgency(ready.priority, ready.run.job, ready.run.task)


class ReadyTasks:
    """The ready tasks of the shards that a worker owns, the most urgent first. Times are of one clock that never runs backwards."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._shards: Collection[int] = ()
        self._kept: dict[tuple[int, int], _Kept] = {}
        self._of_job: dict[int, set[int]] = {}
        self._of_client = Counter[str]()
        self._order: list[tuple[Urgency, float]] = []
        self._later: list[tuple[float, Urgency]] = []

    def __len__(self) -> int:
        return len(self._kept)

    def own(self, shards: Collection[int]) -> None:
        """Keep tasks of these shards only."""
        self._shards = frozenset(shards)
        for kept in list(self._kept.values()):
            if kept.ready.shard not in self._shards:
                self._drop(kept.ready.run.job, kept.ready.run.task)

    def put(self, tasks: Iterable[ReadyTask], *, now: float) -> None:
        """Add tasks, or what is known of them by now."""
        for ready in tasks:
            key, known = ready.run[:2], self._kept.get(ready.run[:2])
            same = known is not None and known.ready._replace(due_in=0.0) == ready._replace(due_in=0.0)
            if same and known is not None and known.due_at <= now + ready.due_in:
                continue
            if ready.shard in self._shards and (known is not None or len(self._kept) < self._most):
                self._of_client[ready.client] += known is None
                self._kept[key] = _Kept(ready, now + ready.due_in)
                self._of_job.setdefault(ready.run.job, set()).add(ready.run.task)
                heappush(self._later, (now + ready.due_in, urgency(ready)))

    def replace(self, jobs: Iterable[int], tasks: Iterable[ReadyTask], *, now: float) -> None:
        """These are all the ready tasks of these jobs."""
        for job in jobs:
            for task in list(self._of_job.get(job, ())):
                self._drop(job, task)
        self.put(tasks, now=now)

    def first(self, now: float) -> ReadyTask | None:
        """The most urgent task that is due; it stays."""
        while self._later and self._later[0][0] <= now:
            due_at, order = heappop(self._later)
            heappush(self._order, (order, due_at))
        while self._order:
            order, due_at = self._order[0]
            kept = self._kept.get((order.job, order.task))
            if kept is not None and (urgency(kept.ready), kept.due_at) == (order, due_at):
                return kept.ready
            heappop(self._order)  # replaced or dropped meanwhile
        return None

    def take(self, now: float) -> ReadyTask | None:
        """The most urgent task that is due; it is not ready any more."""
        ready = self.first(now)
        if ready is not None:
            self._drop(ready.run.job, ready.run.task)
        return ready

    def take_of_others(self, client: str, now: float) -> ReadyTask | None:
        """The most urgent task of another client that is due; it is not ready any more."""
        if len(self._kept) == self._of_client.get(client, 0):
            return None
        due = [kept.ready for kept in self._kept.values() if kept.ready.client != client and kept.due_at <= now]
        ready = min(due, key=urgency, default=None)
        if ready is not None:
            self._drop(ready.run.job, ready.run.task)
        return ready

    def due_in(self, now: float) -> float | None:
        """Seconds until another task is due; None when none is awaited."""
        while self._later:
            due_at, order = self._later[0]
            kept = self._kept.get((order.job, order.task))
            if kept is not None and kept.due_at == due_at:
                return max(due_at - now, 0.0)
            heappop(self._later)
        return None

    def _drop(self, job: int, task: int) -> None:
        client = self._kept.pop((job, task)).ready.client
        self._of_client[client] -= 1
        if not self._of_client[client]:
            del self._of_client[client]
        self._of_job[job].discard(task)
        if not self._of_job[job]:
            del self._of_job[job]


class WaitingLong(Generic[K]):
    """What is found in look after look: other members' work that nobody starts."""

    def __init__(self, seconds: float = BORROWED_AFTER) -> None:
        self._seconds = seconds
        self._since: dict[K, float] = {}

    def seen(self, keys: Iterable[K], *, now: float) -> set[K]:
        """Those that have been there for long enough. What is not seen any more is forgotten."""
        self._since = {key: self._since.get(key, now) for key in keys}
        return {key for key, since in self._since.items() if now - since >= self._seconds}

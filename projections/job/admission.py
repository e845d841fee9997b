"""Admission: selects the queued jobs for which there are slots. See docs/explanation/job-engine.md#slots and ADR 0021.

A read only proposes, the append decides: a slot is a claim that only one job can hold. So two controllers that propose at the same
time, or one that was frozen between reading and writing, cannot start too many jobs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, NamedTuple

from domain.job.aggregate import low_slots_of, slots_of
from domain.job.values import JobState
from projections.job.settings import EngineSettingsQueries
from projections.job.view import SHARDS
from projections.kernel.database.arrays import bigints, texts
from projections.kernel.database.database import Database
from projections.kernel.sql.distinct import distinct

AT_ONCE: Final = 500
"""The most jobs of a client that start in one round; the next round follows at once."""

_CLIENTS = distinct("client", table="job_view", where=f"state = {JobState.QUEUED}")
_HELD = "SELECT scope, value::bigint FROM unique_claims WHERE scope = ANY(%s::text[])"
_NEXT = f"""
SELECT a.client, j.id, j.priority, j.transaction_id, j.shard, j.next_queue
FROM unnest(%(clients)s::text[], %(most)s::bigint[], %(most_low)s::bigint[], %(thresholds)s::bigint[])
    AS a (client, most, most_low, threshold)
CROSS JOIN LATERAL (
    SELECT f.*, row_number() OVER (PARTITION BY f.priority < a.threshold ORDER BY f.priority, f.id) AS turn FROM (
        SELECT id, priority, transaction_id, shard, next_queue FROM job_view v
        WHERE v.client = a.client AND v.state = {JobState.QUEUED} ORDER BY priority, id LIMIT a.most
    ) AS f
) AS j
WHERE (j.priority < a.threshold OR j.turn <= a.most_low) AND (%(shards)s::bigint[] IS NULL OR j.shard = ANY(%(shards)s::bigint[]))
    AND (%(queue)s::text IS NULL OR j.next_queue = %(queue)s)
ORDER BY j.priority, j.id LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The number of jobs of a client that may run at a time, and the number of these slots that are reserved for urgent jobs, which
    have a priority below the threshold."""

    max_jobs: int
    priority_slots: int
    priority_threshold: int

    @property
    def low(self) -> int:
        return max(self.max_jobs - self.priority_slots, 0)


class QueuedJob(NamedTuple):
    """A queued job. `queue` is the queue of its next task; empty if no task remains."""

    job: int
    priority: int
    transaction_id: str = ""
    shard: int = 0
    queue: str = ""


@dataclass(frozen=True, slots=True)
class AdmittedJob:
    """A job for which there is a slot."""

    queued: QueuedJob
    slot: int
    low_slot: int | None
    client: str = ""


@dataclass(frozen=True, slots=True)
class UsedSlots:
    """The numbers of the slots that a client's jobs hold."""

    slots: frozenset[int]
    low_slots: frozenset[int]


def admit(queued: Sequence[QueuedJob], used: UsedSlots, *, capacity: Capacity, begin: float = 0.0) -> list[AdmittedJob]:
    """Return the jobs of a client that may start now, in the order of the queue.

    After a limit was lowered below the number of used slots, no job starts until enough jobs have ended. `begin`, from 0 to 1, is
    the place where the search for free numbers begins: controllers that begin at different places do not propose the same numbers.
    """
    free = _free(used.slots, capacity.max_jobs, begin=begin)
    free_low = _free(used.low_slots, capacity.low, begin=begin)
    jobs: list[AdmittedJob] = []
    for job in queued:
        if not free:
            break
        if job.priority < capacity.priority_threshold:
            jobs.append(AdmittedJob(job, free.pop(), None))
        elif free_low:
            jobs.append(AdmittedJob(job, free.pop(), free_low.pop()))
        else:
            break  # the jobs after it are not urgent either
    return jobs


def _free(used: frozenset[int], most: int, *, begin: float) -> list[int]:
    """Return the free numbers up to `most`, in a circle, in reverse order: the first one is last."""
    count = most - len(used)
    if count <= 0:
        return []
    first = int(begin * most) + 1
    numbers = (number for number in (*range(first, most + 1), *range(1, first)) if number not in used)
    return list(islice(numbers, min(count, AT_ONCE)))[::-1]


class QueuedJobs:
    """Reads queued jobs and used slots."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._settings = EngineSettingsQueries(database)

    async def proposals(
        self, shards: Collection[int] | None = None, *, queue: str | None = None, limit: int | None = None
    ) -> list[AdmittedJob]:
        """Return jobs that may start now, the most urgent first: of these shards, whose next task is for this queue."""
        clients = [] if shards is not None and not shards else await self.clients()
        if not clients:
            return []
        settings = await self._settings.of(clients)
        capacities = {
            client: Capacity(limits.max_jobs, limits.priority_slots, limits.priority_threshold)
            for client, limits in settings.items()
        }
        used = await self.used_slots(clients)
        queued = await self.queued(capacities, used, shards=shards, queue=queue, limit=limit)
        begin = 0.5 if shards is None else min(shards) / SHARDS
        admitted = [
            replace(job, client=client)
            for client, jobs in queued.items()
            for job in admit(jobs, used[client], capacity=capacities[client], begin=begin)
        ]
        return sorted(admitted, key=lambda job: (job.queued.priority, job.queued.job))

    async def clients(self) -> list[str]:
        """Return the clients with queued jobs."""
        return [client for (client,) in await self._database.rows(_CLIENTS)]

    async def used_slots(self, clients: Iterable[str]) -> dict[str, UsedSlots]:
        scopes = {scope: (client, low) for client in clients for scope, low in ((slots_of(client), 0), (low_slots_of(client), 1))}
        numbers: defaultdict[str, tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
        for scope, number in await self._database.rows(_HELD, (texts(list(scopes)),)):
            client, low = scopes[scope]
            numbers[client][low].add(number)
        return {client: UsedSlots(frozenset(numbers[client][0]), frozenset(numbers[client][1])) for client, _ in scopes.values()}

    async def queued(
        self,
        capacities: Mapping[str, Capacity],
        used: Mapping[str, UsedSlots],
        *,
        shards: Collection[int] | None = None,
        queue: str | None = None,
        limit: int | None = None,
    ) -> dict[str, list[QueuedJob]]:
        """Return the jobs of each client's queue for which there are slots, in the order in which they start; only those of
        `shards` and those whose next task is for `queue`, if given, and `limit` of all of them.

        The whole queue decides which jobs have a slot, not only the shards, so controllers with different shards never propose a
        job before one that must start sooner.
        """
        free = {client: capacity.max_jobs - len(used[client].slots) for client, capacity in capacities.items()}
        asked = [client for client, count in free.items() if count > 0]
        jobs: defaultdict[str, list[QueuedJob]] = defaultdict(list)
        if not asked:
            return jobs
        parameters = {
            "clients": texts(asked),
            "most": bigints([min(free[client], AT_ONCE) for client in asked]),
            "most_low": bigints([capacities[client].low - len(used[client].low_slots) for client in asked]),
            "thresholds": bigints([capacities[client].priority_threshold for client in asked]),
            "shards": None if shards is None else bigints(list(shards)),
            "queue": queue,
            "limit": limit,
        }
        for client, *columns in await self._database.rows(_NEXT, parameters):
            jobs[client].append(QueuedJob(*columns))
        return jobs

"""Admission: queued jobs for which there are slots. Explained in docs/explanation/job-engine.md#slots; ADR 0021.

A read only proposes, the append decides: a slot is a claim that only one job can hold. So two controllers that propose at the same
time, or one that was frozen between reading and writing, cannot start a job too many.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from domain.job.state import low_slots_of, slots_of
from domain.job.values import JobState
from projections.kernel.arrays import bigints, texts
from projections.kernel.database import Database
from projections.kernel.distinct import distinct

AT_ONCE: Final = 500
"""At most so many jobs of a client are started in one round; the next round follows at once."""

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
ORDER BY j.priority, j.id
"""


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many jobs of a client may be started at a time, and how many of these slots are reserved for urgent jobs: those with a
    priority below the threshold."""

    max_jobs: int
    priority_slots: int
    priority_threshold: int

    @property
    def low(self) -> int:
        return max(self.max_jobs - self.priority_slots, 0)


class Queued(NamedTuple):
    """A queued job. `queue` is that of its next task; empty if it has none left."""

    job: int
    priority: int
    transaction_id: str = ""
    shard: int = 0
    queue: str = ""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A job for which there is a slot."""

    queued: Queued
    slot: int
    low_slot: int | None


@dataclass(frozen=True, slots=True)
class Held:
    """The numbers of the slots that a client's jobs hold."""

    slots: frozenset[int]
    low_slots: frozenset[int]


def admitted(queued: Sequence[Queued], held: Held, *, capacity: Capacity, begin: float = 0.0) -> list[Admitted]:
    """The jobs of a client that may start now, in the order of the queue.

    After a limit was lowered below the number of held slots, none starts until enough have ended. `begin`, from 0 to 1, is where to
    look for free numbers first: controllers that begin at different ones do not meet."""
    free = _free(held.slots, capacity.max_jobs, begin=begin)
    free_low = _free(held.low_slots, capacity.low, begin=begin)
    found: list[Admitted] = []
    for one in queued:
        if not free:
            break
        if one.priority < capacity.priority_threshold:
            found.append(Admitted(one, free.pop(), None))
        elif free_low:
            found.append(Admitted(one, free.pop(), free_low.pop()))
        else:
            break  # all after it are not urgent either
    return found


def _free(held: frozenset[int], most: int, *, begin: float) -> list[int]:
    """The free numbers up to `most`, in a circle, the first one last."""
    count = most - len(held)
    if count <= 0:
        return []
    first = int(begin * most) + 1
    numbers = (number for number in (*range(first, most + 1), *range(1, first)) if number not in held)
    return list(islice(numbers, min(count, AT_ONCE)))[::-1]


class Admission:
    """Reads queued jobs and held slots."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def clients(self) -> list[str]:
        """Clients with queued jobs."""
        return [client for (client,) in await self._database.rows(_CLIENTS)]

    async def held(self, clients: Iterable[str]) -> dict[str, Held]:
        named = {scope: (client, low) for client in clients for scope, low in ((slots_of(client), 0), (low_slots_of(client), 1))}
        found: defaultdict[str, tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
        for scope, number in await self._database.rows(_HELD, (texts(list(named)),)):
            client, low = named[scope]
            found[client][low].add(number)
        return {client: Held(frozenset(found[client][0]), frozenset(found[client][1])) for client, _ in named.values()}

    async def queued(
        self, capacities: Mapping[str, Capacity], held: Mapping[str, Held], *, shards: Collection[int] | None = None
    ) -> dict[str, list[Queued]]:
        """The jobs of each client's queue for which there are slots, in the order in which they start; only those of these shards,
        if given. Which jobs have a slot depends on the whole queue, not on the shards: so those who ask for different shards
        never propose a job before one that must start sooner."""
        free = {client: known.max_jobs - len(held[client].slots) for client, known in capacities.items()}
        asked = [client for client, count in free.items() if count > 0]
        found: defaultdict[str, list[Queued]] = defaultdict(list)
        if not asked:
            return found
        given = {
            "clients": texts(asked),
            "most": bigints([min(free[client], AT_ONCE) for client in asked]),
            "most_low": bigints([capacities[client].low - len(held[client].low_slots) for client in asked]),
            "thresholds": bigints([capacities[client].priority_threshold for client in asked]),
            "shards": None if shards is None else bigints(list(shards)),
        }
        for client, *one in await self._database.rows(_NEXT, given):
            found[client].append(Queued(*one))
        return found

"""Admission: queued jobs for which there are slots. Explained in docs/explanation/job-engine.md#slots; ADR 0021.

A read only proposes, the append decides: a slot is a claim that only one job can hold. So two controllers that propose at the same
time, or one that was frozen between reading and writing, cannot start a job too many.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
SELECT a.client, j.id, j.priority, j.transaction_id FROM unnest(%s::text[], %s::bigint[]) AS a (client, most)
CROSS JOIN LATERAL (
    SELECT id, priority, transaction_id FROM job_view v WHERE v.client = a.client AND v.state = {JobState.QUEUED}
    ORDER BY priority, id LIMIT a.most
) AS j
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
    job: int
    priority: int
    transaction_id: str = ""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A job for which there is a slot."""

    job: int
    priority: int
    slot: int
    low_slot: int | None
    transaction_id: str


@dataclass(frozen=True, slots=True)
class Held:
    """The numbers of the slots that a client's jobs hold."""

    slots: frozenset[int]
    low_slots: frozenset[int]


def admitted(queued: Sequence[Queued], held: Held, *, capacity: Capacity) -> list[Admitted]:
    """The jobs of a client that may start now, in the order of the queue.

    After a limit was lowered below the number of held slots, none starts until enough have ended."""
    free = _free(held.slots, capacity.max_jobs)
    free_low = _free(held.low_slots, capacity.low)
    found: list[Admitted] = []
    for one in queued:
        if not free:
            break
        if one.priority < capacity.priority_threshold:
            found.append(Admitted(one.job, one.priority, free.pop(), None, one.transaction_id))
        elif free_low:
            found.append(Admitted(one.job, one.priority, free.pop(), free_low.pop(), one.transaction_id))
        else:
            break  # all after it are not urgent either
    return found


def _free(held: frozenset[int], most: int) -> list[int]:
    """The free numbers up to `most`, the lowest last."""
    count = most - len(held)
    if count <= 0:
        return []
    numbers = (number for number in range(1, most + 1) if number not in held)
    return [number for number, _ in zip(numbers, range(min(count, AT_ONCE)), strict=False)][::-1]


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

    async def queued(self, most: dict[str, int]) -> dict[str, list[Queued]]:
        """The first jobs of each client's queue, at most `most[client]`, in the order in which they start."""
        found: defaultdict[str, list[Queued]] = defaultdict(list)
        asked = (texts(list(most)), bigints([min(count, AT_ONCE) for count in most.values()]))
        for client, *one in await self._database.rows(_NEXT, asked):
            found[client].append(Queued(*one))
        return found

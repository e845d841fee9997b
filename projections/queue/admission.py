"""Which queued jobs there are slots for. Document 3, "States and transitions" (queued → started) and "Settings"; ADR 0021.

What is read here only proposes. The append decides: a slot is a claim that one job at a time may hold, so two who propose at once,
or one who was frozen between reading and writing, cannot start a job too many.
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

AT_ONCE: Final = 500
"""So many jobs of a client are started in one go; the next go comes at once."""

_CLIENTS = f"""
WITH RECURSIVE c (client) AS (
    (SELECT client FROM job_view WHERE state = {JobState.QUEUED} ORDER BY client LIMIT 1)
    UNION ALL
    SELECT (SELECT v.client FROM job_view v WHERE v.state = {JobState.QUEUED} AND v.client > c.client ORDER BY v.client LIMIT 1)
    FROM c WHERE c.client IS NOT NULL
)
SELECT client FROM c WHERE client IS NOT NULL
"""
_HELD = "SELECT scope, value::bigint FROM claims WHERE scope = ANY(%s::text[])"
_NEXT = f"""
SELECT a.client, j.id, j.priority, j.transaction_id FROM unnest(%s::text[], %s::bigint[]) AS a (client, most)
CROSS JOIN LATERAL (
    SELECT id, priority, transaction_id FROM job_view v WHERE v.client = a.client AND v.state = {JobState.QUEUED}
    ORDER BY priority, id LIMIT a.most
) AS j
"""


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many jobs of a client may be started at a time, and how many of the slots wait for those that are urgent: of a priority
    below the threshold."""

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
    """A job that there is a slot for."""

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
    """Of a client's queued jobs, in the order in which they start, those that may start now. Pure.

    Where a limit was lowered below what is held, nothing starts until enough has ended."""
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
            break  # behind it only others that are not urgent
    return found


def _free(held: frozenset[int], most: int) -> list[int]:
    """As many numbers as are left of `most`, the lowest last."""
    count = most - len(held)
    if count <= 0:
        return []
    numbers = (number for number in range(1, most + 1) if number not in held)
    return [number for number, _ in zip(numbers, range(min(count, AT_ONCE)), strict=False)][::-1]


class Admission:
    """Reads what proposals are made of."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def clients(self) -> list[str]:
        """Those who have something queued."""
        return [client for (client,) in await self._database.rows(_CLIENTS)]

    async def held(self, clients: Iterable[str]) -> dict[str, Held]:
        named = {scope: (client, low) for client in clients for scope, low in ((slots_of(client), 0), (low_slots_of(client), 1))}
        found: defaultdict[str, tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
        for scope, number in await self._database.rows(_HELD, (texts(list(named)),)):
            client, low = named[scope]
            found[client][low].add(number)
        return {client: Held(frozenset(found[client][0]), frozenset(found[client][1])) for client, _ in named.values()}

    async def queued(self, most: dict[str, int]) -> dict[str, list[Queued]]:
        """The first so many jobs of each client's queue, in the order in which they start."""
        found: defaultdict[str, list[Queued]] = defaultdict(list)
        asked = (texts(list(most)), bigints([min(count, AT_ONCE) for count in most.values()]))
        for client, *one in await self._database.rows(_NEXT, asked):
            found[client].append(Queued(*one))
        return found

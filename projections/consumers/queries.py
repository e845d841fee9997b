"""The state of consumers for operators: their positions, the processes that run them, and their parked records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from projections.consumers.leases import LEASE
from projections.kernel.database.database import Database
from projections.log.reader import HEAD
from projections.webhook.queries import MOST_COUNTED

_ALL = f"""
SELECT c.consumer, c.shards, c.held, c.position, log.position, few.counted, few.oldest
FROM (
    SELECT consumer, count(*) AS shards, min(position) AS position,
        count(*) FILTER (WHERE owner IS NOT NULL AND held_until > clock_timestamp()) AS held
    FROM consumer_shards GROUP BY consumer
) AS c
CROSS JOIN ({HEAD}) AS log (position)
CROSS JOIN LATERAL (
    SELECT count(*) AS counted, min(parked_at) AS oldest
    FROM (SELECT parked_at FROM parked_records p WHERE p.consumer = c.consumer ORDER BY position LIMIT {MOST_COUNTED}) AS first
) AS few
ORDER BY c.consumer
"""
_MEMBERS = """
SELECT consumer, member, host, busy, seen_at, extract(epoch FROM clock_timestamp() - failing_since)::float8, fault,
    extract(epoch FROM clock_timestamp() - reads_log_since)::float8
FROM consumer_members ORDER BY host, member
"""
_READING_LOG = f"""
SELECT DISTINCT consumer FROM consumer_members
WHERE reads_log_since IS NOT NULL AND seen_at > clock_timestamp() - make_interval(secs => {2 * LEASE})
ORDER BY consumer
"""


@dataclass(frozen=True, slots=True)
class Member:
    """A process that runs a consumer; `busy` is the amount of its work in progress.

    `failing` is the number of seconds for which its work has only failed, with `fault`; None if it does not fail. `reads_log` is
    the number of seconds for which it reads the log instead of a broker.
    """

    id: UUID
    host: str
    busy: int
    seen_at: datetime
    failing: float | None = None
    fault: str | None = None
    reads_log: float | None = None


@dataclass(frozen=True, slots=True)
class ConsumerStatus:
    """The state of a consumer. `owned_shards` counts the shards with a valid lease.

    `position` is that of its slowest shard; None for a consumer that reads a table and not the log. `head` is the last position of
    the log. `parked` records are counted up to `MOST_COUNTED`.
    """

    name: str
    shards: int
    owned_shards: int
    position: int | None
    head: int
    parked: int
    oldest_parked_at: datetime | None

    @property
    def lag(self) -> int | None:
        return None if self.position is None else self.head - self.position


class ConsumerQueries:
    """Reads the tables of consumers, which need not be running."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> Sequence[ConsumerStatus]:
        """Return the consumers by name."""
        return [ConsumerStatus(*row) for row in await self._database.lists.rows(_ALL)]

    async def notification_queue_usage(self) -> float:
        """Return the fraction of PostgreSQL's notification queue that is in use. At 1, commits with a notification fail. A session
        that listens and does not read keeps the queue from shrinking."""
        row = await self._database.lists.row("SELECT pg_notification_queue_usage()")
        return 0.0 if row is None else float(row[0])

    async def members(self) -> dict[str, list[Member]]:
        """Return the members by consumer. A process that crashed is shown for a while."""
        by_consumer: defaultdict[str, list[Member]] = defaultdict(list)
        for consumer, *member in await self._database.lists.rows(_MEMBERS):
            by_consumer[consumer].append(Member(*member))
        return by_consumer

    async def reading_log(self) -> Sequence[str]:
        """Return the names of the consumers that read the log because the broker delivers nothing."""
        return [name for (name,) in await self._database.rows(_READING_LOG)]

    async def exists(self, name: str) -> bool:
        return await self._database.row("SELECT FROM consumer_shards WHERE consumer = %s LIMIT 1", (name,)) is not None

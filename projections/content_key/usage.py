"""Counts of uses of content keys: added in batches, and recorded as an event at most once an hour for each key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from domain.content_key.aggregate import Usage
from domain.content_key.usage import UsageTotal
from domain.kernel.ids import new_id
from projections.kernel.database.arrays import bigints, instants, texts, uuids
from projections.kernel.database.database import Database

PAUSE: Final = "1 hour"
"""The least time between two events of one key."""

# All statements lock rows in the order of the keys, which avoids deadlocks; the one that takes keys waits for none. A batch whose
# number was added already is left out.
_ADD = """
WITH turn AS (
    INSERT INTO content_key_recorders (recorder, batch) VALUES (%(recorder)s, %(batch)s)
    ON CONFLICT (recorder) DO UPDATE SET batch = excluded.batch, written_at = clock_timestamp()
        WHERE content_key_recorders.batch < excluded.batch
    RETURNING batch
)
INSERT INTO content_key_usage AS u (key, count, first_at, last_at, systems, speke_versions, client, correlation_id)
SELECT n.key, n.count, n.first_at, n.last_at, string_to_array(n.systems, E'\\n'), string_to_array(n.versions, E'\\n'), n.client,
    n.correlation_id
FROM turn, unnest(%(keys)s::uuid[], %(counts)s::bigint[], %(firsts)s::timestamptz[], %(lasts)s::timestamptz[], %(systems)s::text[],
    %(versions)s::text[], %(clients)s::text[], %(correlations)s::text[])
    AS n (key, count, first_at, last_at, systems, versions, client, correlation_id)
ORDER BY n.key
ON CONFLICT (key) DO UPDATE SET count = u.count + excluded.count,
    first_at = least(u.first_at, excluded.first_at), last_at = greatest(u.last_at, excluded.last_at),
    systems = ARRAY(SELECT DISTINCT one FROM unnest(u.systems || excluded.systems) AS one ORDER BY one),
    speke_versions = ARRAY(SELECT DISTINCT one FROM unnest(u.speke_versions || excluded.speke_versions) AS one ORDER BY one),
    client = CASE WHEN u.first_at IS NULL THEN excluded.client ELSE u.client END,
    correlation_id = CASE WHEN u.first_at IS NULL THEN excluded.correlation_id ELSE u.correlation_id END
"""
_TAKE = f"""
UPDATE content_key_usage SET due_at = clock_timestamp() + interval '{PAUSE}'
WHERE key = ANY(ARRAY(
    SELECT key FROM content_key_usage WHERE first_at IS NOT NULL AND due_at <= clock_timestamp()
    ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED
))
RETURNING key, count, first_at, last_at, systems, speke_versions, client, correlation_id
"""
_LOCKED = """locked AS MATERIALIZED (
    SELECT key FROM content_key_usage WHERE key = ANY(%(keys)s::uuid[]) ORDER BY key FOR UPDATE
)"""
# Uses that were counted in the meantime wait for the next event.
_RECORDED = f"""
WITH {_LOCKED}
UPDATE content_key_usage u SET
    first_at = CASE WHEN u.count > t.count THEN t.last_at END, last_at = CASE WHEN u.count > t.count THEN u.last_at END,
    systems = CASE WHEN u.count > t.count THEN u.systems ELSE '{{}}' END,
    speke_versions = CASE WHEN u.count > t.count THEN u.speke_versions ELSE '{{}}' END
FROM locked, unnest(%(keys)s::uuid[], %(counts)s::bigint[], %(lasts)s::timestamptz[]) AS t (key, count, last_at)
WHERE u.key = locked.key AND u.key = t.key
"""
_PUT_BACK = f"WITH {_LOCKED} UPDATE content_key_usage u SET due_at = '-infinity' FROM locked WHERE u.key = locked.key"
_LEAVE = "DELETE FROM content_key_recorders WHERE recorder = %s OR written_at < clock_timestamp() - interval '1 day'"


class DueUsage(NamedTuple):
    """The uses of a key that no event records yet. Its count covers all time."""

    key: UUID
    total: UsageTotal


class UsageCounts:
    """The counts to which one process adds."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._recorder = new_id()

    async def add(self, batch: int, totals: Mapping[UUID, UsageTotal]) -> None:
        """Add a batch. Its number is higher than that of the previous batch; adding a batch again changes nothing."""
        usages = [total.usage for total in totals.values()]
        parameters = {
            "recorder": self._recorder,
            "batch": batch,
            "keys": uuids(list(totals)),
            "counts": bigints([usage.count for usage in usages]),
            "firsts": instants([usage.first_at for usage in usages]),
            "lasts": instants([usage.last_at for usage in usages]),
            "systems": texts(["\n".join(usage.systems) for usage in usages]),
            "versions": texts(["\n".join(usage.speke_versions) for usage in usages]),
            "clients": texts([total.client for total in totals.values()]),
            "correlations": texts([total.correlation_id for total in totals.values()]),
        }
        await self._database.execute(_ADD, parameters)

    async def take(self, most: int) -> list[DueUsage]:
        """Take keys whose next event is due. No process takes them again within the next hour."""
        async with self._database.connection() as connection:
            rows = await (await connection.execute(_TAKE, (most,))).fetchall()
        return [
            DueUsage(key, UsageTotal(client, correlation, Usage(count, first, last, tuple(systems), tuple(versions))))
            for key, count, first, last, systems, versions, client, correlation in rows
        ]

    async def mark_recorded(self, due: Sequence[DueUsage]) -> None:
        """Mark these uses as recorded in the log."""
        usages = [due_usage.total.usage for due_usage in due]
        parameters = {
            "keys": uuids([due_usage.key for due_usage in due]),
            "counts": bigints([usage.count for usage in usages]),
            "lasts": instants([usage.last_at for usage in usages]),
        }
        await self._database.execute(_RECORDED, parameters)

    async def put_back(self, due: Sequence[DueUsage]) -> None:
        """Make these uses due again at once, because their events could not be written."""
        await self._database.execute(_PUT_BACK, {"keys": uuids([due_usage.key for due_usage in due])})

    async def leave(self) -> None:
        """Remove this process. It adds nothing more, and no batch is in progress."""
        await self._database.execute(_LEAVE, (self._recorder,))

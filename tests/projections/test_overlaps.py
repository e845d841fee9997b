"""Events that use one channel at the same time are found by an index, however many were there before them."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from api.wiring.core import Core
from projections.event.queries import _OVERLAPPED, _OVERLAPPING, EventQueries

CHANNEL = UUID(int=101)
TODAY = datetime(2041, 1, 2, tzinfo=UTC)
_PAST = """
INSERT INTO event_view (id, version, deleted, state, channel_id, auto_start_at, scheduled_end, document)
SELECT gen_random_uuid(), 1, false, 0, %s, %s - n * interval '1 hour', %s - n * interval '1 hour' + interval '30 minutes', ''
FROM generate_series(1, 20000) AS n
"""


@pytest.fixture
async def events(inner: Core) -> EventQueries:
    """Events of which none was started, one an hour, until today."""
    await inner.database.execute(_PAST, (CHANNEL, TODAY, TODAY))
    return EventQueries(inner.database)


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        (_OVERLAPPING, {"channel": CHANNEL, "start": TODAY, "end": None, "without": UUID(int=1), "limit": 4}),
        (_OVERLAPPED, {"now": TODAY, "until": TODAY, "limit": 1000}),
    ],
    ids=["of one Event", "of all Events"],
)
async def test_events_that_are_over_are_not_read(
    inner: Core, events: EventQueries, query: str, parameters: dict[str, object]
) -> None:
    async with inner.database.connection() as connection, connection.transaction():
        # Statistics and plan share a transaction, because autovacuum may have begun before the rows existed.
        await connection.execute("ANALYZE event_view")
        cursor = await connection.execute(f"EXPLAIN {query}".encode(), parameters)
        plan = "\n".join(line for (line,) in await cursor.fetchall())
    assert "channel_use" in plan, plan
    assert "COALESCE(scheduled_end" in plan.partition("Index Cond:")[2] + plan.rpartition("Index Cond:")[2], plan


async def test_only_those_of_the_same_time_are_found(events: EventQueries) -> None:
    before = datetime(2041, 1, 1, 22, 15, tzinfo=UTC)
    found = await events.overlapping(CHANNEL, before, end=TODAY, without=UUID(int=1), limit=4)
    assert [start for _, start, _ in found] == [datetime(2041, 1, 1, hour, tzinfo=UTC) for hour in (22, 23)]

"""Queries of deliveries: each reads through an index, and a backlog is counted up to a limit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import psycopg
import pytest

from api.wiring.core import Core
from projections.kernel.database.database import Database, Pool
from projections.kernel.database.primary import Primary
from projections.webhook.queries import DeliveryFilter, DeliveryQueries, DeliveryState, PendingCounts
from tests.api.media.webhook.deliveries_given import FINAL, Deliveries
from tests.projections.webhook.finishing import finishing

HOOK = "0f0e0d0c-0b0a-4908-8706-0504030201ff"


FINISHED = "finished_deliveries_default_webhook_position_ordering_key_idx"


OTHERS = (
    "CREATE TEMPORARY TABLE others AS SELECT f.* FROM finished_deliveries AS f, generate_series(1, 9)",
    "UPDATE others SET webhook = gen_random_uuid()",
    "INSERT INTO finished_deliveries SELECT * FROM others",
)
"""Nine times as many of other webhooks: an index of all of them is the longer way."""


class Planned(Pool):
    """Keeps the plan of every question that it answers."""

    plans: list[str]

    async def rows(self, question: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        async with self.connection() as connection:
            plan = await connection.execute("EXPLAIN " + question, parameters)
            self.plans = [*getattr(self, "plans", []), "\n".join(row[0] for row in await plan.fetchall())]
        return await super().rows(question, parameters)


@pytest.mark.parametrize(
    ("wanted", "indexes"),
    [
        (DeliveryFilter(), ("pending_deliveries_pkey", FINISHED)),
        (DeliveryFilter(event_id=FINAL), ("pending_deliveries_ordering_keys", FINISHED)),
        (DeliveryFilter(state=DeliveryState.PENDING), ("pending_deliveries_pkey",)),
        (DeliveryFilter(state=DeliveryState.FAILED), (f"{FINISHED}1",)),
    ],
    ids=str,
)
async def test_a_page_is_read_backward_in_an_index(
    inner: Core, database_url: str, wanted: DeliveryFilter, indexes: tuple[str, ...]
) -> None:
    given = Deliveries(inner, HOOK)
    await given.make(*range(1, 4001))
    await inner.database.execute(finishing("mod(position, 100) = 0", state="2"))
    await inner.database.execute(finishing("mod(position, 100) < 50"))
    with psycopg.connect(database_url, autocommit=True) as owner:
        for statement in OTHERS:
            owner.execute(statement)
        owner.execute("ANALYZE pending_deliveries, finished_deliveries")
    async with Database(database_url) as database:
        await database.lists.close()
        planned = database.lists = Planned(
            Primary(database_url), availability=database.availability, role=None, size=1, seconds=None
        )
        await planned.open()
        page = await DeliveryQueries(database).page(UUID(HOOK), wanted)
    assert (len(page.results), page.more) == (20, True)
    used = re.findall(r"Index Scan Backward using (\S+) on (?:pending_deliveries|finished_deliveries_default) ", planned.plans[0])
    assert used == list(indexes), planned.plans[0]


async def test_a_backlog_counts_pending_and_due_deliveries(inner: Core) -> None:
    deliveries = DeliveryQueries(inner.database)
    assert await deliveries.backlog() == PendingCounts(0, 0, 0.0, 0)
    given = Deliveries(inner, HOOK)
    await given.make(1, 2, 3, 4)
    await given.finish(4)
    await inner.database.execute("UPDATE pending_deliveries SET due_at = now() + interval '1 hour' WHERE position = 1")
    await inner.database.execute("UPDATE pending_deliveries SET due_at = now() - interval '1 hour' WHERE position IN (2, 4)")
    backlog = await deliveries.backlog()
    assert (backlog.pending, backlog.due) == (3, 2)
    assert 3600 <= backlog.oldest < 3660


async def test_in_flight_counts_members_seen_recently(inner: Core) -> None:
    await inner.database.execute(
        "INSERT INTO consumer_members (consumer, member, host, busy, seen_at)"
        " SELECT c, gen_random_uuid(), 'a', busy, now() - ago * interval '1 second'"
        " FROM (VALUES ('deliveries', 3, 1), ('deliveries', 4, 9), ('deliveries', 5, 11), ('webhooks', 6, 1)) AS m (c, busy, ago)"
    )
    assert (await DeliveryQueries(inner.database).backlog()).in_flight == 7

"""Pending work in /metrics."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.operations.backlog import Backlog
from api.wiring.core import Core
from tests.api.asking import add_room, last
from tests.api.media.webhook.deliveries_given import Deliveries
from tests.projections.consuming import consumer, park

HOOK = "0f0e0d0c-0b0a-4908-8706-0504030201ff"


@pytest.fixture(autouse=True)
def backlog(services_by_type: dict[Any, Any]) -> Backlog:
    """A backlog that is read at each scrape."""
    made: Backlog = services_by_type[Backlog]
    made.fresh = 0
    return made


async def numbers(http: httpx.AsyncClient) -> dict[str, str]:
    """Return the values by name, without the prefix."""
    lines = [line for line in (await http.get("/metrics")).text.splitlines() if not line.startswith("#")]
    return {name.removeprefix("medialedger_"): value for name, _, value in (line.rpartition(" ") for line in lines)}


async def test_metrics_of_consumers_have_their_name(http: httpx.AsyncClient, inner: Core) -> None:
    await add_room(http)
    head = await last(inner)
    await consumer(inner, "webhooks", head, head - 1)
    await consumer(inner, "deliveries", None)
    await park(inner, "webhooks", (1, "room:a"), (2, "room:a"))
    shown = await numbers(http)
    assert {name: value for name, value in shown.items() if "consumer" in name} == {
        'consumer_position{consumer="webhooks"}': f"{head - 1:.1f}",
        'consumer_lag_events{consumer="webhooks"}': "1.0",
        'parked_records{consumer="webhooks"}': "2.0",
        'parked_records{consumer="deliveries"}': "0.0",
        'consumer_failing_seconds{consumer="webhooks"}': "0.0",
        'consumer_failing_seconds{consumer="deliveries"}': "0.0",
        'consumer_reads_log_seconds{consumer="deliveries"}': "0.0",
        'consumer_reads_log_seconds{consumer="webhooks"}': "0.0",
        'consumer_shards{consumer="webhooks"}': "2.0",
        'consumer_shards{consumer="deliveries"}': "1.0",
        'consumer_shards_held{consumer="webhooks"}': "0.0",
        'consumer_shards_held{consumer="deliveries"}': "0.0",
    }
    await inner.database.execute("UPDATE consumer_members SET failing_since = now() - interval '1 day', fault = 'away'")
    assert float((await numbers(http))['consumer_failing_seconds{consumer="webhooks"}']) >= 86_400
    await inner.database.execute("DELETE FROM consumer_shards")
    await inner.database.execute("DELETE FROM consumer_members")
    assert not [name for name in await numbers(http) if "consumer" in name], "one that is gone is not told of any more"


async def test_deliveries_are_counted(http: httpx.AsyncClient, inner: Core) -> None:
    shown = await numbers(http)
    assert {shown[f"deliveries_{name}"] for name in ("pending", "due", "in_flight", "oldest_seconds")} == {"0.0"}
    await Deliveries(inner, HOOK).make(1, 2)
    await inner.database.execute("UPDATE pending_deliveries SET due_at = now() + interval '1 day' WHERE position = 1")
    await consumer(inner, "deliveries", None)
    await inner.database.execute("UPDATE consumer_members SET seen_at = now()")
    shown = await numbers(http)
    assert [shown[f"deliveries_{name}"] for name in ("pending", "due", "in_flight")] == ["2.0", "1.0", "2.0"]
    assert 0 < float(shown["deliveries_oldest_seconds"]) < 60


async def test_a_session_that_listens_and_does_not_read_is_seen_in_the_queue(http: httpx.AsyncClient, inner: Core) -> None:
    async with inner.database.connection() as frozen:
        await frozen.execute("LISTEN frozen")
        async with frozen.transaction():
            await frozen.execute("SELECT 1")
            for number in range(5):
                await inner.database.execute("SELECT pg_notify('frozen', repeat('x', 7000) || %s)", (str(number),))
            assert 0 < float((await numbers(http))["notification_queue_usage"]) < 1
        await frozen.execute("UNLISTEN *")
    assert float((await numbers(http))["notification_queue_usage"]) < 1


async def test_without_a_database_there_are_still_metrics(http: httpx.AsyncClient, inner: Core) -> None:
    await inner.database.close()
    answer = await http.get("/metrics")
    assert answer.status_code == 200
    assert "up to 100001" in answer.text


async def test_scrapes_in_a_row_count_once(http: httpx.AsyncClient, inner: Core, backlog: Backlog) -> None:
    backlog.fresh = 600
    assert (await numbers(http))["deliveries_pending"] == "0.0"
    await Deliveries(inner, HOOK).make(1, 2)
    assert (await numbers(http))["deliveries_pending"] == "0.0"
    backlog.fresh = 0
    assert (await numbers(http))["deliveries_pending"] == "2.0"

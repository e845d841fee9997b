"""The health of webhooks: docs/reference/api/webhooks.md#health."""

from __future__ import annotations

from datetime import timedelta

import httpx

from api.wiring.core import Core
from tests.api.asking import add_webhook, last
from tests.api.media.webhook.deliveries_given import Deliveries
from tests.support.clock import NOON, HandClock


async def test_each_webhook_says_what_waits_and_what_failed_within_a_day(
    http: httpx.AsyncClient, inner: Core, clock: HandClock
) -> None:
    assert (await http.get("/api/webhook/health")).json() == []
    quiet, given = await add_webhook(http), Deliveries(inner, await add_webhook(http))
    before = await last(inner)
    await given.make(1, 2, 3, error="no", at=NOON - timedelta(days=2))
    await given.make(4, 5, error="no")
    await given.make(6, 7, 8)
    await given.finish(6)
    await inner.database.execute(
        "INSERT INTO delivery_endpoints (webhook, failing_since) VALUES (%s, %s)", (given.webhook, NOON + timedelta(seconds=4))
    )
    failing, other = (await http.get("/api/webhook/health")).json()
    assert failing.pop("nextTryAt") is not None
    assert failing == {
        "webhookId": str(given.webhook),
        "webhookUrl": other["webhookUrl"],
        "disabledAt": None,
        "failingSince": "2031-01-02T12:00:04.000Z",
        "succeededAt": None,
        "circuit": "closed",
        "circuitSince": None,
        "circuitUntil": None,
        "pending": 2,
        "oldestPendingAt": "2031-01-02T12:00:07.000Z",
        "delivered": 1,
        "failed": 2,
    }
    assert (other["webhookId"], other["pending"], other["failed"], other["failingSince"]) == (quiet, 0, 0, None)
    clock.forward(days=2)
    assert [record["failed"] for record in (await http.get("/api/webhook/health")).json()] == [0, 0]
    await http.put(f"/api/webhook/{given.webhook}", json={"disabledAt": "2031-01-02T13:00:00Z"})
    [disabled] = [record for record in (await http.get("/api/webhook/health")).json() if record["disabledAt"]]
    assert (disabled["webhookId"], disabled["nextTryAt"]) == (str(given.webhook), None)
    assert await last(inner) == before + 1

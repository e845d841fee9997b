"""Deliveries of a webhook over HTTP: docs/reference/api/webhooks.md#deliveries."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from tests.api.asking import UNKNOWN, add, add_webhook, assert_problem, fields_of, last
from tests.api.media.webhook.deliveries_given import FINAL, OTHER, PAYLOAD, Deliveries


@pytest.fixture
async def given(http: httpx.AsyncClient, inner: Core) -> Deliveries:
    return Deliveries(inner, await add_webhook(http))


async def page(http: httpx.AsyncClient, given: Deliveries, **query: Any) -> dict[str, Any]:
    answer = await http.get(f"/api/webhook/{given.webhook}/deliveries/", params=query)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def positions(http: httpx.AsyncClient, given: Deliveries, **query: Any) -> list[int]:
    return [result["position"] for result in (await page(http, given, **query))["results"]]


async def test_a_pending_delivery_is_shown_with_its_payload(http: httpx.AsyncClient, given: Deliveries) -> None:
    await given.make(7)
    [shown] = (await page(http, given))["results"]
    assert shown.pop("dueAt") is not None
    assert shown == {
        "id": given.id(7),
        "webhookId": str(given.webhook),
        "eventId": str(FINAL),
        "jobId": None,
        "position": 7,
        "state": "PENDING",
        "action": "Updated",
        "payload": json.loads(PAYLOAD),
        "createdAt": "2031-01-02T12:00:07.000Z",
        "finishedAt": None,
        "error": None,
        "attempts": [],
    }
    assert list(shown["payload"]) == list(json.loads(PAYLOAD))


async def test_tries_are_shown_in_order(http: httpx.AsyncClient, given: Deliveries) -> None:
    await given.make(7)
    await given.attempt(7, status=None, error="No complete answer within 15 s.")
    await given.attempt(7, status=503, error="The answer was 503 Service Unavailable.")
    await given.attempt(7)
    await given.finish(7)
    shown = (await http.get(f"/api/webhook/{given.webhook}/deliveries/{given.id(7)}")).json()
    assert (await page(http, given))["results"] == [shown]
    assert (shown["state"], shown["dueAt"], shown["finishedAt"], shown["error"]) == (
        "DELIVERED",
        None,
        "2031-01-02T12:00:07.000Z",
        None,
    )
    common = {"seconds": 0.012, "address": "192.0.2.1", "response": "thanks"}
    assert shown["attempts"] == [
        {
            "number": 1,
            "startedAt": "2031-01-02T12:00:00.000Z",
            "status": None,
            "error": "No complete answer within 15 s.",
            **common,
        },
        {
            "number": 2,
            "startedAt": "2031-01-02T12:01:00.000Z",
            "status": 503,
            "error": "The answer was 503 Service Unavailable.",
            **common,
        },
        {"number": 3, "startedAt": "2031-01-02T12:02:00.000Z", "status": 200, "error": None, **common},
    ]


async def test_tries_belong_to_their_own_delivery(http: httpx.AsyncClient, inner: Core, given: Deliveries) -> None:
    another = Deliveries(inner, await add_webhook(http))
    for rows in (given, another):
        await rows.make(7)
        await rows.make(7, event=OTHER)
    await given.attempt(7)
    assert [(result["eventId"], len(result["attempts"])) for result in (await page(http, given))["results"]] == [
        (str(OTHER), 0),
        (str(FINAL), 1),
    ]
    assert [len(result["attempts"]) for result in (await page(http, another))["results"]] == [0, 0]


async def test_pages_of_deliveries_are_newest_first(http: httpx.AsyncClient, given: Deliveries) -> None:
    assert await page(http, given) == {"pageSize": 20, "results": [], "next": None}
    await given.make(*range(1, 6))
    await given.make(3, event=OTHER)
    seen = []
    following = f"/api/webhook/{given.webhook}/deliveries/?pageSize=1"
    while following:
        shown = (await http.get(following)).json()
        seen += [(result["position"], result["eventId"]) for result in shown["results"]]
        following = shown["next"]
    assert seen == [(5, str(FINAL)), (4, str(FINAL)), (3, str(OTHER)), (3, str(FINAL)), (2, str(FINAL)), (1, str(FINAL))]
    assert (await page(http, given, pageSize=6))["next"] is None
    assert (await page(http, given, pageSize=5000))["pageSize"] == 1000


async def test_a_page_begins_after_a_delivery_that_is_gone(http: httpx.AsyncClient, inner: Core, given: Deliveries) -> None:
    await given.make(1, 2, 3)
    await inner.database.execute("DELETE FROM pending_deliveries WHERE position = 2")
    assert await positions(http, given, before=given.id(2)) == [1]


async def test_deliveries_are_found_by_state_and_event(http: httpx.AsyncClient, given: Deliveries) -> None:
    await given.make(1, 2, 3, 4)
    await given.make(5, 6, event=OTHER)
    await given.finish(2)
    await given.finish(3, "The answer was 500 Internal Server Error.")
    await given.finish(6)
    for state, expected in {"pending": [5, 4, 1], "1": [6, 2], "Delivered": [6, 2], "FAILED": [3]}.items():
        assert await positions(http, given, state=state) == expected
    assert await positions(http, given, eventId=OTHER) == [6, 5]
    assert await positions(http, given, eventid=FINAL, STATE="pending", before=given.id(4)) == [1]
    assert await positions(http, given, eventId=UNKNOWN) == []
    first = await page(http, given, eventId=FINAL, state=0, pageSize=1)
    assert (await http.get(first["next"])).json()["results"][0]["position"] == 1


@pytest.mark.parametrize(
    ("query", "field"),
    [("state=3", "state"), ("state=sent", "state"), ("eventId=x", "eventId"), ("before=7", "before"), ("pageSize=0", "pageSize")],
)
async def test_an_invalid_query_is_400(http: httpx.AsyncClient, given: Deliveries, query: str, field: str) -> None:
    assert fields_of(await http.get(f"/api/webhook/{given.webhook}/deliveries/?{query}")) == [field]


async def test_webhooks_of_an_event_have_deliveries_too(http: httpx.AsyncClient, inner: Core) -> None:
    given = Deliveries(inner, await add_webhook(http, eventId=(await add(http))["id"]))
    await given.make(7)
    assert await positions(http, given) == [7]


async def test_a_missing_delivery_is_404(http: httpx.AsyncClient, inner: Core, given: Deliveries) -> None:
    another = Deliveries(inner, await add_webhook(http))
    await given.make(7)
    path = f"/api/webhook/{given.webhook}/deliveries"
    for unknown in (another.id(7), given.id(8), given.id(7, OTHER), UNKNOWN, "ffffffff-ffff-ffff-ffff-ffffffffffff"):
        assert_problem(await http.get(f"{path}/{unknown}"), 404)
        assert_problem(await http.post(f"{path}/{unknown}/resend"), 404)
    assert (await http.delete(f"/api/webhook/{given.webhook}")).status_code == 200
    before = await last(inner)
    for webhook in (given.webhook, UNKNOWN):
        assert_problem(await http.get(f"/api/webhook/{webhook}/deliveries/"), 404)
        assert_problem(await http.get(f"/api/webhook/{webhook}/deliveries/{given.id(7)}"), 404)
        assert_problem(await http.post(f"/api/webhook/{webhook}/deliveries/{given.id(7)}/resend"), 404)
        assert_problem(await http.post(f"/api/webhook/{webhook}/recover/?since=2031-01-02"), 404)
    assert await last(inner) == before

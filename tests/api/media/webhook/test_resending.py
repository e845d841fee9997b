"""Resend and recover over HTTP. The tests of the sender show that it sends these deliveries."""

from __future__ import annotations

import httpx
import pytest

from api.wiring.core import Core
from tests.api.asking import add_webhook, assert_problem, fields_of, last
from tests.api.media.webhook.deliveries_given import OTHER, Deliveries
from tests.support.clock import HandClock

ANSWERED = "The answer was 500 Internal Server Error."
DISABLED = "the webhook is disabled"
AGAIN = (0, 0, None, False, True)
"""Pending, no tries, no error, not finished, due."""


@pytest.fixture
async def given(http: httpx.AsyncClient, inner: Core) -> Deliveries:
    return Deliveries(inner, await add_webhook(http))


async def resend(http: httpx.AsyncClient, given: Deliveries, position: int) -> httpx.Response:
    return await http.post(f"/api/webhook/{given.webhook}/deliveries/{given.id(position)}/resend")


async def recover(http: httpx.AsyncClient, given: Deliveries, since: str) -> httpx.Response:
    return await http.post(f"/api/webhook/{given.webhook}/recover/", params={"since": since})


async def disable(http: httpx.AsyncClient, given: Deliveries, at: str | None = "2031-01-02T12:00:00.000Z") -> None:
    answer = await http.put(f"/api/webhook/{given.webhook}", json={"disabledAt": at})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("error", [None, ANSWERED])
async def test_a_finished_delivery_becomes_pending_under_the_same_id(
    http: httpx.AsyncClient, inner: Core, given: Deliveries, error: str | None
) -> None:
    await given.make(7)
    await given.attempt(7, status=500, error=error)
    await given.finish(7, error)
    path = f"/api/webhook/{given.webhook}/deliveries/{given.id(7)}"
    finished = (await http.get(path)).headers["etag"]
    assert (await http.get(path)).headers["etag"] == finished
    before = await last(inner)
    answer = await resend(http, given, 7)
    shown = answer.json()
    assert (answer.status_code, shown["id"], shown["state"], shown["error"]) == (200, given.id(7), "PENDING", None)
    assert (shown["finishedAt"], len(shown["attempts"])) == (None, 1)
    assert shown["dueAt"] is not None
    assert await given.rows() == [(7, *AGAIN)]
    result = await http.get(path)
    assert (result.json(), result.headers["etag"]) == (shown, answer.headers["etag"])
    assert result.headers["etag"] != finished
    assert await last(inner) == before


async def test_a_pending_delivery_is_not_sent_again(http: httpx.AsyncClient, given: Deliveries) -> None:
    await given.make(7)
    before = await given.rows()
    assert_problem(await resend(http, given, 7), 409)
    assert await given.rows() == before


async def test_everything_that_failed_since_then_becomes_pending(http: httpx.AsyncClient, inner: Core, given: Deliveries) -> None:
    another = Deliveries(inner, await add_webhook(http))
    for rows in (given, another):
        await rows.make(1, 2, 3, 4)
        await rows.make(5, event=OTHER, error=DISABLED)
        for position in (1, 3):
            await rows.finish(position, ANSWERED)
        await rows.finish(4)
    before = await last(inner)
    answer = await recover(http, given, "2031-01-02T13:00:03.000+01:00")
    assert (answer.status_code, answer.json()) == (200, {"requeued": 2})
    assert await given.rows() == [
        (1, 2, 1, ANSWERED, True, False),
        (2, *AGAIN),
        (3, *AGAIN),
        (4, 1, 1, None, True, False),
        (5, *AGAIN),
    ]
    assert [row[1] for row in await another.rows()] == [2, 0, 2, 1, 2]
    assert (await recover(http, given, "2031-01-02T12:00:03.000Z")).json() == {"requeued": 0}
    assert (await recover(http, given, "2031-01-02")).json() == {"requeued": 1}
    assert await last(inner) == before


async def test_nothing_is_sent_again_to_a_disabled_webhook(http: httpx.AsyncClient, given: Deliveries) -> None:
    await given.make(7, error=DISABLED)
    await disable(http, given)
    before = await given.rows()
    assert_problem(await resend(http, given, 7), 409)
    assert_problem(await recover(http, given, "2031-01-01"), 409)
    assert await given.rows() == before
    await disable(http, given, None)
    assert (await recover(http, given, "2031-01-01")).json() == {"requeued": 1}


@pytest.mark.parametrize(
    "query", ["", "since=", "since=yesterday", "since=1", "since=2031-01-02T25:00", "Since=2031-01-02&since=x"]
)
async def test_recovery_needs_a_time(http: httpx.AsyncClient, given: Deliveries, query: str) -> None:
    await given.make(7, error=ANSWERED)
    answer = await http.post(f"/api/webhook/{given.webhook}/recover/?{query}")
    assert [field.lower() for field in fields_of(answer)] == ["since"]
    assert [row[1] for row in await given.rows()] == [2]


async def test_a_recovery_under_one_idempotency_key_runs_once(http: httpx.AsyncClient, given: Deliveries, clock: HandClock) -> None:
    await given.make(7, error=ANSWERED)
    path, headers = f"/api/webhook/{given.webhook}/recover/?since=2031-01-01", {"Idempotency-Key": "a"}
    assert (await http.post(path, headers=headers)).json() == {"requeued": 1}
    await given.finish(7, ANSWERED)
    repeated = await http.post(path, headers=headers)
    assert (repeated.json(), repeated.headers["idempotency-replayed"]) == ({"requeued": 1}, "true")
    assert [row[1] for row in await given.rows()] == [2]


async def test_senders_are_notified_of_the_webhook_only_when_something_changed(
    http: httpx.AsyncClient, inner: Core, given: Deliveries
) -> None:
    await given.make(7, error=ANSWERED)
    listener = await inner.database.connect("test")
    try:
        await listener.execute("LISTEN medialedger_deliveries")
        await recover(http, given, "2031-02-01")
        await resend(http, given, 7)
        await resend(http, given, 7)
        await given.finish(7, ANSWERED)
        await recover(http, given, "2031-01-01")
        await listener.execute("NOTIFY medialedger_deliveries, 'end'")
        reported = [notice.payload async for notice in listener.notifies(timeout=60, stop_after=3)]
    finally:
        await listener.close()
    assert reported == [str(given.webhook), str(given.webhook), "end"]

"""The deliveries of all webhooks in one list, several resent, and the circuit breaker of an endpoint."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from projections.webhook.keys import delivery_id
from tests.api.asking import add_webhook, fields_of, last
from tests.api.media.webhook.callbacks_given import add_callback
from tests.api.media.webhook.deliveries_given import OTHER, Deliveries
from tests.support.application import introduce
from tests.support.clock import NOON

PATH = "/api/webhook/deliveries/"


@pytest.fixture
async def given(http: httpx.AsyncClient, inner: Core) -> tuple[Deliveries, Deliveries]:
    """The deliveries of two webhooks. Both received the write 3, and one of them has a failed delivery."""
    first, second = [Deliveries(inner, await add_webhook(http)) for _ in range(2)]
    await first.make(1, 3)
    await second.make(2, 3, 4)
    await second.make(5, event=OTHER, error="no")
    await first.finish(1)
    await second.finish(4, "answered 500")
    await second.attempt(4, status=500, error="answered 500")
    return first, second


async def places(http: httpx.AsyncClient, **query: Any) -> list[tuple[str, int]]:
    answer = await http.get(PATH, params=query)
    assert answer.status_code == 200, answer.text
    return [(result["webhookId"], result["position"]) for result in answer.json()["results"]]


async def test_every_page_goes_on_where_the_one_before_ended(http: httpx.AsyncClient, given: tuple[Deliveries, Deliveries]) -> None:
    first, second = (str(entry.webhook) for entry in given)
    third = sorted([(first, 3), (second, 3)], reverse=True)
    whole = [(second, 5), (second, 4), *third, (second, 2), (first, 1)]
    assert await places(http) == whole
    seen: list[tuple[str, int]] = []
    address: str | None = f"{PATH}?pageSize=2"
    while address and len(seen) < 10:
        page = (await http.get(address)).json()
        seen += [(result["webhookId"], result["position"]) for result in page["results"]]
        address = page["next"]
    assert seen == whole
    shown = (await http.get(PATH, params={"state": "FAILED", "pageSize": 1, "before": given[1].id(5, OTHER)})).json()["results"]
    [answer] = (await http.get(f"/api/webhook/{second}/deliveries/", params={"state": 2})).json()["results"][1:]
    assert shown == [answer | {"webhookUrl": (await http.get(f"/api/webhook/{second}")).json()["webhookUrl"]}]
    assert answer["attempts"][0]["status"] == 500


async def test_filters_combine(http: httpx.AsyncClient, given: tuple[Deliveries, Deliveries]) -> None:
    first, second = (str(entry.webhook) for entry in given)
    after, until = [(NOON + timedelta(seconds=seconds)).isoformat() for seconds in (2, 4)]
    assert await places(http, state="failed") == [(second, 5), (second, 4)]
    assert await places(http, state="DELIVERED") == [(first, 1)]
    assert await places(http, webhookId=first) == [(first, 3), (first, 1)]
    assert await places(http, webhookId=second, state="pending") == [(second, 3), (second, 2)]
    assert await places(http, **{"from": after, "webhookId": second}) == [(second, 5), (second, 4), (second, 3), (second, 2)]
    assert await places(http, kind="event", state="failed") == [(second, 5), (second, 4)]
    assert await places(http, kind="job") == await places(http, kind="log") == await places(http, kind="infrastructure") == []
    assert await places(http, **{"to": until, "from": after, "webhookId": first}) == [(first, 3)]
    assert await places(http, to=NOON.isoformat()) == []
    await http.delete(f"/api/webhook/{second}")
    assert {webhook for webhook, _ in await places(http)} == {first}


async def test_a_callback_shows_them_to_its_client_and_to_an_admin(
    http: httpx.AsyncClient, inner: Core, given: tuple[Deliveries, Deliveries]
) -> None:
    callback = Deliveries(inner, await add_callback(inner, client="studio"))
    await callback.make_callback(9, job=17)
    about = {"kind": "job"}
    assert await places(http, **about) == [(str(callback.webhook), 9)]
    for name, shown in (("studio", [(str(callback.webhook), 9)]), ("stranger", [])):
        headers = {"API-KEY": await introduce(inner, name, "operator")}
        answer = await http.get(PATH, params=about, headers=headers)
        assert [(result["webhookId"], result["position"]) for result in answer.json()["results"]] == shown
        resent = await http.post(
            f"{PATH}resend/", json={"ids": [str(delivery_id(callback.webhook, 9, ordering_key="job:17"))]}, headers=headers
        )
        expected = "it is already pending" if shown else "there is no such delivery"
        assert (resent.json()["requeued"], resent.json()["results"][0]["error"]) == (0, expected)


async def test_several_are_sent_again_and_each_says_whether(
    http: httpx.AsyncClient, inner: Core, given: tuple[Deliveries, Deliveries]
) -> None:
    first, second = given
    await http.put(f"/api/webhook/{first.webhook}", json={"disabledAt": "2031-01-02T12:00:00.000Z"})
    unknown = "00000000-0000-8001-9a6c-3f0d5c1f2b7e"
    ids = [second.id(4), second.id(5, OTHER), second.id(2), first.id(1), unknown, second.id(4)]
    before = await last(inner)
    key = {"Idempotency-Key": "again"}
    answers = [await http.post(f"{PATH}resend/", json={"ids": ids}, headers=key) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert answers[0].json()["requeued"] == 2
    reported = [(result["id"], result["error"]) for result in answers[0].json()["results"]]
    reasons = [None, None, "it is already pending", "the webhook is disabled", "there is no such delivery"]
    assert reported == list(zip(ids, reasons, strict=False))
    assert await places(http, state="FAILED") == []
    assert await last(inner) == before


@pytest.mark.parametrize(
    ("query", "field"),
    [({"state": "7"}, "state"), ({"kind": "room"}, "kind"), ({"webhookId": "x"}, "webhookId"), ({"from": "soon"}, "from")],
)
async def test_a_filter_that_is_none_is_refused(http: httpx.AsyncClient, query: dict[str, str], field: str) -> None:
    answer = await http.get(PATH, params=query)
    assert (answer.status_code, fields_of(answer)) == (400, [field])


@pytest.mark.parametrize("ids", [[], ["x"], ["00000000-0000-8001-9a6c-3f0d5c1f2b7e"] * 101])
async def test_a_list_of_ids_that_is_none_is_refused(http: httpx.AsyncClient, ids: list[str]) -> None:
    assert (await http.post(f"{PATH}resend/", json={"ids": ids})).status_code == 400


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        ("NULL", ("closed", True, False)),
        ("now() + interval '9 s'", ("open", True, True)),
        ("now() - interval '9 s'", ("half-open", True, False)),
    ],
)
async def test_the_circuit_breaker_of_an_endpoint_is_shown(
    http: httpx.AsyncClient, inner: Core, until: str, expected: tuple[str, bool, bool]
) -> None:
    webhook = await add_webhook(http)
    [health] = (await http.get("/api/webhook/health")).json()
    assert (health["circuit"], health["circuitSince"], health["circuitUntil"]) == ("closed", None, None)
    await inner.database.execute(
        f"INSERT INTO delivery_endpoints (webhook, circuit_since, circuit_until) VALUES (%s, now() - interval '1 minute', {until})",
        (webhook,),
    )
    [health] = (await http.get("/api/webhook/health")).json()
    assert (health["circuit"], health["circuitSince"] is not None, health["circuitUntil"] is not None) == expected

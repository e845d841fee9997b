"""Callbacks over HTTP: docs/reference/api/webhooks.md#callbacks."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from domain.webhook.callback import Callback
from tests.api.asking import UNKNOWN, add, add_webhook, assert_problem, fields_of, last, logged, topics
from tests.api.media.webhook.callbacks_given import add_callback, named
from tests.api.media.webhook.deliveries_given import Deliveries
from tests.support.application import introduce
from tests.support.clock import NOON, HandClock
from tests.support.feeding import do


@pytest.fixture
async def path(inner: Core) -> str:
    return f"/api/webhook/{await add_callback(inner, 'https://u:pass-word@hooks.test/job?token=s3cret')}"


async def test_a_callback_is_shown_without_the_secret_part_of_its_address(http: httpx.AsyncClient, inner: Core, path: str) -> None:
    answer = await http.get(f"{path}/callback/")
    shown = {"id": path.rpartition("/")[2], "client": "admin", "webhookUrl": "https://hooks.test/job", "disabledAt": None}
    assert (answer.status_code, answer.json(), answer.headers["etag"]) == (200, shown, '"1"')
    everything = repr([event.data for event in await logged(inner)])
    assert "s3cret" not in everything
    assert "pass-word" not in everything


async def test_callbacks_are_listed_by_client_in_pages(http: httpx.AsyncClient, inner: Core, clock: HandClock) -> None:
    assert (await http.get("/api/webhook/callback/")).json() == {"pageSize": 20, "totalCount": 0, "results": []}
    made = []
    for client in ("admin", "adm", "studio"):
        made.append(await add_callback(inner, client=client))
        clock.forward(seconds=1)
    await add_webhook(http)
    await add_webhook(http, eventId=(await add(http))["id"])

    async def ids(**query: object) -> list[str]:
        answer = await http.get("/api/webhook/callback/", params=query)  # type: ignore[arg-type]
        return [result["id"] for result in answer.json()["results"]]

    assert await ids() == made
    assert await ids(order="DESC", pageSize=1) == made[2:]
    assert await ids(pageSize=2, pageNumber=2) == made[2:]
    assert await ids(client="adm") == made[1:2]
    assert await ids(client="nobody") == await ids(client="%") == []
    assert fields_of(await http.get("/api/webhook/callback/", params={"pageSize": 0})) == ["pageSize"]


async def test_no_family_shows_or_changes_webhooks_of_another(http: httpx.AsyncClient, inner: Core, path: str) -> None:
    event = (await add(http))["id"]
    others = [f"/api/webhook/{await add_webhook(http, **about)}" for about in ({}, {"eventId": event})]
    before = await last(inner)
    assert [record["id"] for record in (await http.get("/api/webhook/")).json()] == [others[0].rpartition("/")[2]]
    assert [record["id"] for record in (await http.get(f"/api/webhook/event/{event}")).json()] == [others[1].rpartition("/")[2]]
    for asked in (path, f"{path}/event/", *(f"{other}/callback/" for other in others), f"/api/webhook/{UNKNOWN}/callback/"):
        assert (await http.get(asked)).status_code == 204, asked
    key = path.rpartition("/")[2]
    for answer in (
        await http.put(path, json={"webhookUrl": "https://evil.test"}),
        await http.put(f"{path}/event/", json={"eventId": event}),
        await http.post("/api/webhook/", json={"id": key, "webhookUrl": "https://evil.test"}),
        await http.post("/api/webhook/event/", json={"id": key, "eventId": event}),
        *[await http.put(f"{other}/callback/", json={"disabledAt": None}) for other in (*others, f"/api/webhook/{UNKNOWN}")],
    ):
        assert_problem(answer, 404)
    assert await last(inner) == before


async def test_a_callback_is_enabled_again_and_no_other_field_changes(http: httpx.AsyncClient, inner: Core, path: str) -> None:
    key = path.rpartition("/")[2]
    await do(inner, Callback.amend.on(key, {"disabled_at": NOON}))
    assert (await http.get(f"{path}/callback/")).json()["disabledAt"] == "2031-01-02T12:00:00.000Z"
    body = {"disabledAt": None, "webhookUrl": "https://evil.test", "client": "x", "eventId": UNKNOWN}
    assert_problem(await http.put(f"{path}/callback/", json=body, headers={"If-Match": '"1"'}), 412)
    for again in range(2):
        answer = await http.put(f"{path}/callback/", json=body)
        assert (answer.status_code, answer.json()["disabledAt"], answer.headers["etag"]) == (200, None, '"3"'), again
    assert (await logged(inner, f"callback:{key}"))[-1].data.keys() == {"timestamp", "disabled_at"}
    assert fields_of(await http.put(f"{path}/callback/", json={})) == ["disabledAt"]
    assert fields_of(await http.put(f"{path}/callback/", json={"disabledAt": "soon"})) == ["disabledAt"]


async def test_a_callback_gets_a_new_secret_and_is_deleted_like_any_webhook(
    http: httpx.AsyncClient, inner: Core, path: str
) -> None:
    assert (await http.post(f"{path}/secret/")).json()["secret"].startswith("whsec_")
    gone = await http.delete(path)
    assert (gone.status_code, gone.json()["client"], "s3cret" in gone.text) == (200, "admin", False)
    assert (await http.get(f"{path}/callback/")).status_code == 204
    assert (await http.get("/api/webhook/callback/")).json()["totalCount"] == 0
    assert await named(inner, "https://u:pass-word@hooks.test/job?token=s3cret") == [path.rpartition("/")[2]]
    verbs = ["registered", "amended", "deleted", "restored"]
    assert await topics(inner, f"callback:{path.rpartition('/')[2]}") == [f"callback.{verb}" for verb in verbs]


async def test_deliveries_of_a_callback_have_a_job(http: httpx.AsyncClient, inner: Core, path: str) -> None:
    given = Deliveries(inner, path.rpartition("/")[2])
    await given.make_callback(7, job=17)
    await given.make_callback(8, job=18)
    answer = (await http.get(f"{path}/deliveries/")).json()
    assert [(result["eventId"], result["jobId"], result["action"]) for result in answer["results"]] == [
        (None, 18, "started"),
        (None, 17, "started"),
    ]
    assert answer["results"][0]["payload"]["job_id"] == 18
    results = (await http.get(f"{path}/deliveries/", params={"jobId": 17})).json()["results"]
    assert [entry["position"] for entry in results] == [7]
    assert (await http.get(f"{path}/deliveries/", params={"jobId": 17, "eventId": UNKNOWN})).json()["results"] == []
    following = (await http.get(f"{path}/deliveries/", params={"jobId": 17, "pageSize": 1, "before": results[0]["id"]})).json()
    assert (following["results"], following["next"]) == ([], None)
    await given.finish(7, error="The answer was 500 Internal Server Error.")
    again = await http.post(f"{path}/deliveries/{results[0]['id']}/resend")
    assert (again.status_code, again.json()["jobId"], again.json()["state"]) == (200, 17, "PENDING")
    assert fields_of(await http.get(f"{path}/deliveries/", params={"jobId": 0})) == ["jobId"]


async def test_a_callback_is_ruled_by_the_client_of_its_jobs_and_by_an_admin(http: httpx.AsyncClient, inner: Core) -> None:
    path = f"/api/webhook/{await add_callback(inner, client='one')}"
    keys = {client: await introduce(inner, client, "operator") for client in ("one", "two")}
    keys["viewer"] = await introduce(inner, "viewer", "viewer")
    calls: list[tuple[str, str, Any]] = [
        ("POST", f"{path}/secret/", {}),
        ("PUT", f"{path}/callback/", {"json": {"disabledAt": None}}),
        ("GET", f"{path}/deliveries/", {}),
        ("GET", f"{path}/deliveries/{UNKNOWN}", {}),
        ("POST", f"{path}/deliveries/{UNKNOWN}/resend", {}),
        ("POST", f"{path}/recover/", {"params": {"since": "2031-01-01T00:00:00Z"}}),
        ("DELETE", path, {}),
    ]
    before = await last(inner)
    for method, called, given in (*calls, ("POST", f"{path}/test/", {})):
        for client in ("two", "viewer"):
            answer = await http.request(method, called, headers={"API-KEY": keys[client], "client": client}, **given)
            assert_problem(answer, 403)
    assert await last(inner) == before
    for headers in ({}, {"API-KEY": keys["one"], "client": "one"}):
        path = f"/api/webhook/{await add_callback(inner, client='one')}"
        for method, called, given in calls:
            expected = 404 if UNKNOWN in called else 200
            assert (await http.request(method, called, headers=headers, **given)).status_code == expected, called

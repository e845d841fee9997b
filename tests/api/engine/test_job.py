"""Submitting jobs over HTTP: the response, and the events that were appended."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID

import httpx
import pytest

from api.wiring.core import Core
from domain.kernel.encryption import SecretCipher
from projections.vault.vault import Vault
from tests.api.asking import add, add_flow, engine_error, last, logged, topics, version_of
from tests.api.engine.jobs_given import FETCH, FUTURE, PROBE, flow, request, single, submit
from tests.support.application import introduce

SECRET = "hunter22-very-secret"
WITH_SECRETS = {
    "content_id": "film",
    "url": f"https://origin.test/a.mp4?token={SECRET}",
    "custom_data": {"password": SECRET, "note": f"see ftp://user:{SECRET}@files.test/a"},
}
SHOWN = {
    "content_id": "film",
    "url": "https://origin.test/a.mp4",
    "custom_data": {"password": "****", "note": "see ftp://files.test/a"},
}


async def test_an_accepted_job_is_queued_with_the_answer(engine: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    answer = await engine.post("/engine/job", json=request(priority=3))
    job = answer.json()["id"]
    assert (answer.status_code, answer.json()) == (200, {"id": job, "result": "accepted"})
    assert await last(inner) == before + 1
    event = (await logged(inner, f"job:{job}"))[0]
    assert (event.topic, event.cause["actor"]) == ("job.accepted", "admin")
    submission = event.data["submission"]
    assert (submission["client"], submission["workflow"], submission["content_id"]) == ("admin", "http_fetch_verify", "film")
    assert submission["parameters"] == FETCH
    assert [task["name"] for task in submission["tasks"]] == ["fetch", "store"]
    assert event.data.keys() == {"timestamp", "submission", "priority", "headers", "transaction_id"}
    assert event.data["transaction_id"] == answer.headers["x-transaction-id"]
    assert await single(engine, job) == {
        "id": job,
        "client": "admin",
        "workflow": "http_fetch_verify",
        "priority": 3,
        "position": 1,
        "top_of_queue": True,
        "parameters": FETCH,
        "created_at": "2031-01-02T12:00:00.000Z",
        "updated_at": "2031-01-02T12:00:00.000Z",
        "run_at": None,
        "queue_state": "queued",
        "failed": False,
        "reason": None,
        "started_at": None,
        "ended_at": None,
    }
    assert version_of(await engine.get(f"/engine/jobs/{job}")) == 1


async def test_ids_are_numbers_in_the_order_of_acceptance(engine: httpx.AsyncClient) -> None:
    jobs = [await submit(engine) for _ in range(3)]
    assert jobs == list(range(jobs[0], jobs[0] + 3))
    many = await asyncio.gather(*(submit(engine) for _ in range(50)))
    assert len(set(many)) == 50
    assert min(many) > jobs[-1]


@pytest.mark.parametrize(
    ("fields", "state", "run_at"),
    [
        ({"run_at": "2031-01-02T13:00:00.000"}, "scheduled", "2031-01-02T13:00:00.000Z"),
        ({"run_at": "2031-03-30T02:30:00+01:00"}, "scheduled", "2031-03-30T01:30:00.000Z"),
        ({"run_at": "2031-01-02T11:00:00Z"}, "queued", "2031-01-02T11:00:00.000Z"),
        ({"run_at": "2031-01-02T13:00:00.000+02:00"}, "queued", "2031-01-02T11:00:00.000Z"),
        ({"run_at": None, "priority": "10", "sempahore_url": ""}, "queued", None),
        ({"sempahore_url": "https://semaphore.test/open"}, "pending", None),
        ({"sempahore_url": "http://semaphore.test/", "run_at": FUTURE}, "scheduled", FUTURE),
    ],
)
async def test_a_job_with_a_time_or_a_semaphore_waits(
    engine: httpx.AsyncClient, fields: dict[str, Any], state: str, run_at: str | None
) -> None:
    shown = await single(engine, await submit(engine, **fields))
    assert (shown["queue_state"], shown["run_at"]) == (state, run_at)
    assert shown["top_of_queue"] == (state == "queued")


async def test_names_match_in_any_case_and_parameters_exactly(engine: httpx.AsyncClient) -> None:
    body = {"JOB": {"Workflow": "probe_media", "PRIORITY": 2, "Run_At": FUTURE}, "Parameters": {**PROBE, "custom_data": {"aB": 1}}}
    answer = await engine.post("/engine/job", json={**body, "unheard": "of", "Client": "admin"})
    shown = await single(engine, answer.json()["id"])
    assert (shown["workflow"], shown["priority"], shown["run_at"]) == ("probe_media", 2, FUTURE)
    assert shown["parameters"] == {**PROBE, "custom_data": {"aB": 1}}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (request(priority=0), "job.priority: 1 to 10"),
        (request(priority=11), "job.priority: 1 to 10"),
        (request(priority=True), "job.priority: 1 to 10"),
        (request(priority=1.5), "job.priority: 1 to 10"),
        (request(priority="high"), "job.priority: 1 to 10"),
        (
            request(workflow="nothing"),
            "job.workflow: must be one of asset_gif, asset_image, asset_video, captions, compose, http_fetch_verify",
        ),
        (request({"content_id": "film"}), "parameters.url: is required"),
        (request({**FETCH, "odd": 1}), "parameters.odd: is not a parameter of this workflow"),
        (request({**FETCH, "callback_urls": ["https://a.test/", "ftp://x"]}), "parameters.callback_urls[1]: must be an absolute"),
        (request(sempahore_url="ftp://x.test/"), "job.sempahore_url: must be an absolute http or https URL"),
        (request(run_at="tomorrow"), "job.run_at: must be an ISO 8601"),
        ({**request(), "client": "studio"}, "client: must be the client of the header"),
        ({"job": {"workflow": "probe_media"}}, "parameters: is required"),
        ({"parameters": FETCH}, "job: is required"),
        ({"job": {}, "parameters": FETCH}, "job.workflow: is required"),
        ({"job": "probe_media", "parameters": FETCH}, "job: "),
        (request(parameters="text"), "parameters"),  # type: ignore[arg-type]
        ([], "body: "),
    ],
)
async def test_invalid_input_is_refused_with_its_field(engine: httpx.AsyncClient, inner: Core, body: Any, error: str) -> None:
    before = await last(inner)
    answer = await engine.post("/engine/job", json=body)
    assert engine_error(answer, 400).startswith(error), answer.text
    assert answer.json()["id"] is None
    assert await last(inner) == before


async def test_no_secret_is_in_an_event_a_row_or_a_response(engine: httpx.AsyncClient, inner: Core) -> None:
    semaphore = f"https://u:{SECRET}@semaphore.test/open?key={SECRET}"
    headers = {
        "authorization": f"Basic {SECRET}",
        "cookie": SECRET,
        "x-auth-key": SECRET,
        "referer": f"https://a.test/?t={SECRET}",
    }
    job = await submit(
        engine, {**WITH_SECRETS, "callback_urls": [f"https://hooks.test/a?t={SECRET}"]}, headers, sempahore_url=semaphore
    )
    await engine.post(f"/engine/jobs/{job}/rerun", headers=headers)
    views = ("job_view", "job_task_view", "record_view")
    events = [str(await logged(inner)), *[str(await inner.database.rows(f"SELECT * FROM {view}")) for view in views]]
    paths = (f"/engine/jobs/{job}", "/engine/jobs", f"/engine/logs/{job}", f"/engine/logs/{job + 1}", "/engine/dashboard")
    events.extend([(await engine.get(path)).text for path in (*paths, "/api/audit/events/", "/api/webhook/callback/")])
    assert not [text for text in events if SECRET in text]
    assert (await single(engine, job))["parameters"] == {**SHOWN, "callback_urls": ["https://hooks.test/a"]}
    assert (await engine.get("/engine/jobs", params={"search": SECRET})).json() == []
    recorded = json.loads((await engine.get(f"/engine/logs/{job}")).json()[0]["message"])
    assert recorded["job"]["sempahore_url"] == "https://semaphore.test/open"
    assert {name: recorded["headers"][name] for name in headers} == {
        **dict.fromkeys(("authorization", "cookie", "x-auth-key"), "****"),
        "referer": "https://a.test/",
    }
    assert recorded["headers"]["api-key"] == "****"


async def test_masked_values_are_encrypted_in_the_vault(engine: httpx.AsyncClient, inner: Core) -> None:
    semaphore = f"https://semaphore.test/open?key={SECRET}"
    job = await submit(engine, WITH_SECRETS, sempahore_url=semaphore)
    data = (await logged(inner, f"job:{job}"))[0].data
    vault = Vault(inner.database, SecretCipher(bytes(32)))
    opened = await vault.read(UUID(data["submission"]["sealed_parameters"]["reference"]), owner=f"job:{job}")
    assert json.loads(opened or "") == WITH_SECRETS
    assert await vault.read(UUID(data["semaphore"]["sealed_url"]["reference"]), owner=f"job:{job}") == semaphore
    plain = (await logged(inner, f"job:{await submit(engine)}"))[0].data
    assert plain["submission"].get("sealed_parameters") is None
    assert await inner.database.row("SELECT count(*) FROM vault") == (2,)


async def test_callbacks_of_the_job_and_its_flow_are_registered_with_the_job(
    http: httpx.AsyncClient, engine: httpx.AsyncClient, inner: Core
) -> None:
    event = await add(http, FlowId=await add_flow(http, configuration=flow("https://hooks.test/flow")))
    before = await last(inner)
    parameters = {**FETCH, "content_id": event["id"], "callback_urls": ["https://hooks.test/a", "https://hooks.test/b"]}
    first = await submit(engine, parameters)
    assert [event.topic for event in (await logged(inner))[before:]] == ["callback.registered"] * 3 + ["job.accepted"]
    second = await submit(engine, parameters)
    events = [(await logged(inner, f"job:{job}"))[0].data["submission"]["callbacks"] for job in (first, second)]
    assert len(events[0]) == 3
    assert events[0] == events[1]
    assert await last(inner) == before + 5


async def test_first_jobs_at_the_same_time_make_one_callback(engine: httpx.AsyncClient, inner: Core) -> None:
    parameters = {**FETCH, "callback_urls": ["https://hooks.test/a?b=c"]}
    await asyncio.gather(*(submit(engine, parameters) for _ in range(5)))
    assert [event.topic for event in await logged(inner)].count("callback.registered") == 1
    assert await inner.database.row("SELECT count(*) FROM vault") == (1 + 2 * 5,)


async def test_a_repeat_with_an_idempotency_key_submits_one_job(engine: httpx.AsyncClient, inner: Core) -> None:
    headers = {"Idempotency-Key": "once"}
    first = await engine.post("/engine/job", json=request(WITH_SECRETS), headers=headers)
    before = await last(inner)
    again = await engine.post("/engine/job", json=request(WITH_SECRETS), headers=headers)
    assert (again.status_code, again.json()) == (200, first.json())
    assert engine_error(await engine.post("/engine/job", json=request(), headers=headers), 409)
    assert await last(inner) == before
    many = await asyncio.gather(
        *(engine.post("/engine/job", json=request(), headers={"Idempotency-Key": "many"}) for _ in range(10))
    )
    assert len({answer.json()["id"] for answer in many if answer.status_code == 200}) == 1


async def test_a_write_without_a_content_type_is_refused(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await submit(engine)
    before = await last(inner)
    for method, path, body in (
        ("POST", "/engine/job", request()),
        ("PUT", f"/engine/job/{job}", {"priority": 3}),
        ("POST", "/engine/settings", {"name": "max_jobs", "setting": 3}),
    ):
        answer = await engine.request(method, path, content=json.dumps(body).encode())
        assert engine_error(answer, 415) == "The content type must be application/json."
    assert await last(inner) == before


async def test_a_client_submits_under_its_own_name(engine: httpx.AsyncClient, inner: Core) -> None:
    studio = {"API-KEY": await introduce(inner, "studio", "operator"), "client": "studio"}
    assert (await single(engine, await submit(engine, headers=studio)))["client"] == "studio"
    answer = await engine.post("/engine/job", json=request(), headers={**studio, "client": "admin"})
    assert engine_error(answer, 401)
    del engine.headers["client"]
    assert engine_error(await engine.post("/engine/job", json=request()), 401)


async def test_any_json_that_a_client_adds_comes_back_as_it_was(engine: httpx.AsyncClient) -> None:
    odd = {"": None, "a\u2028b": [1.5, -0.0, True, 10**30, {"x": []}], "emoji": "🎬", "'; DROP TABLE job_view; --": "%s %(id)s {}"}
    job = await submit(engine, {**FETCH, "custom_data": odd})
    assert (await single(engine, job))["parameters"]["custom_data"] == odd


async def test_text_that_postgresql_cannot_store_is_refused(engine: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    for raw in (b'"\\u0000"', b'{"\\u0000": 1}', b'"\\ud800"', b"1e999", b"NaN", b'"\xff"', b"[" * 5000 + b"]" * 5000):
        body = b'{"job":{"workflow":"probe_media"},"parameters":{"content_id":"film","file":"a","custom_data":' + raw + b"}}"
        answer = await engine.post("/engine/job", content=body, headers={"content-type": "application/json"})
        assert engine_error(answer, 400)
    assert await last(inner) == before


async def test_changes_of_a_job_append_their_topics(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await submit(engine)
    for body in ({"priority": 1}, {"queue_state": "paused"}, {"queue_state": "queued"}, {"queue_state": "broken"}):
        assert (await engine.put(f"/engine/job/{job}", json=body)).status_code == 200
    names = ["accepted", "priority_changed", "paused", "queued", "broken"]
    assert await topics(inner, f"job:{job}") == [f"job.{name}" for name in names]


async def test_a_client_has_a_limited_number_of_waiting_jobs(engine: httpx.AsyncClient, inner: Core) -> None:
    studio = {"API-KEY": await introduce(inner, "studio", "operator"), "client": "studio"}
    set_for = {"client": "studio", "name": "max_waiting_jobs", "setting": 3}
    assert (await engine.post("/engine/settings", json=set_for)).status_code == 200
    jobs = [await submit(engine, headers=studio, run_at=FUTURE) for _ in range(3)]
    refused = await engine.post("/engine/job", json=request(), headers={**studio, "Idempotency-Key": "k"})
    assert engine_error(refused, 429) == "3 jobs of the client are waiting, which is its limit"
    assert refused.headers["retry-after"] == "10"
    engine_error(await engine.post(f"/engine/jobs/{jobs[0]}/rerun", headers=studio), 429)
    await submit(engine)
    await engine.put(f"/engine/job/{jobs[0]}", json={"queue_state": "broken"}, headers=studio)
    async with asyncio.timeout(60):
        while (await engine.post("/engine/job", json=request(), headers=studio)).status_code != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)

"""Probes and metrics, without an API key."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator

import httpx
import pytest
from prometheus_client import CollectorRegistry

from api.http.routing import routes_of
from api.operations.process_metrics import LoopDelay
from api.operations.routes import Completeness
from api.wiring.core import Core
from api.wiring.services import ROUTES
from domain.kernel.encryption import KeyRing
from projections.kernel.database.database import Database
from projections.vault.master_keys import ProcessKeys, VaultState, master_key_fits
from tests.api.asking import add, add_room, assert_problem, last
from tests.api.serving import serving


@pytest.fixture
async def anyone(http: httpx.AsyncClient) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=http._transport, base_url="http://media.test") as client:
        yield client


async def numbers(anyone: httpx.AsyncClient) -> dict[str, float]:
    text = (await anyone.get("/metrics")).text
    return {name: float(value) for name, value in re.findall(r"^([a-z_]+(?:\{.*\})?) (\S+)$", text, re.M)}


async def test_liveness(anyone: httpx.AsyncClient) -> None:
    for path in ("/livez", "/livez/"):
        answer = await anyone.get(path)
        assert (answer.status_code, answer.json(), answer.headers["cache-control"]) == (200, {"status": "ok"}, "no-store")


async def test_readiness_has_the_last_position(anyone: httpx.AsyncClient, http: httpx.AsyncClient, inner: Core) -> None:
    for _ in range(2):
        await add(http)
        answer = await anyone.get("/readyz")
        assert (answer.status_code, answer.json()) == (200, {"status": "ok", "logHead": await last(inner), "unreadableSecrets": 0})


async def test_secrets_that_no_key_decrypts_are_told_and_take_nothing_out_of_service(
    http: httpx.AsyncClient, inner: Core, database_url: str
) -> None:
    assert (await http.post("/api/webhook/", json={"webhookUrl": "https://receiver.test"})).status_code == 200
    async with Database(database_url, size=1) as owner:
        assert await master_key_fits(owner, KeyRing(b"another key than of the webhook."))
    async with serving(inner, database_url, lambda _: {}) as shown:
        answer = await shown.get("/readyz")
        assert (answer.status_code, answer.json()["unreadableSecrets"]) == (200, 1)
        assert "\nmedialedger_unreadable_secrets 1.0\n" in (await shown.get("/metrics")).text
        output = (await shown.get("/api/health/overview/")).json()
    assert output["unreadableSecrets"] == 1
    assert [(record["level"], record["text"]) for record in output["attention"] if record["about"] == "secrets"] == [
        ("fault", "1 secret cannot be decrypted: no master key of the product matches.")
    ]


async def test_a_process_without_the_key_in_use_is_not_ready(inner: Core, database_url: str) -> None:
    keys = ProcessKeys(inner.database, KeyRing(bytes(32)))
    async with Database(database_url, size=1) as owner:
        assert await master_key_fits(owner, KeyRing(b"another key than of the process."))
    await keys.follow()
    async with serving(inner, database_url, lambda _: {VaultState: VaultState(inner.database, keys)}) as shown:
        answer = await shown.get("/readyz")
    assert_problem(answer, 503)
    assert answer.json()["detail"] == "this process does not hold the master key that the database uses"


async def test_a_process_is_not_ready_before_all_processes_have_started(inner: Core, database_url: str) -> None:
    async with serving(inner, database_url, lambda _: {Completeness: Completeness(lambda: False)}) as shown:
        answer = await shown.get("/readyz")
        assert (await shown.get("/livez")).status_code == 200
    assert_problem(answer, 503)
    assert answer.json()["detail"] == "other processes of the product are starting"


async def test_without_a_database_the_process_is_alive_and_not_ready(anyone: httpx.AsyncClient, inner: Core) -> None:
    await inner.database.close()
    answer = await anyone.get("/readyz")
    assert_problem(answer, 503)
    assert int(answer.headers["retry-after"]) >= 1
    assert (await anyone.get("/livez")).status_code == 200
    assert (await anyone.get("/metrics")).status_code == 200


async def test_metrics_change_with_requests(anyone: httpx.AsyncClient, http: httpx.AsyncClient, inner: Core) -> None:
    await add(http)
    before = await numbers(anyone)
    for _ in range(3):
        await add(http, EventState=2)
    await http.get("/api/event/no-guid")
    after = await numbers(anyone)
    route = 'method="POST",route="/api/event/"'
    for name, by in {
        f'medialedger_http_requests_total{{{route},status="200",surface="media"}}': 3,
        f'medialedger_http_request_seconds_count{{{route},surface="media"}}': 3,
        "medialedger_append_batch_events_sum": 6,
        "medialedger_append_wait_seconds_count": after["medialedger_append_batch_events_count"]
        - before["medialedger_append_batch_events_count"],
        "medialedger_log_head_position": 6,
    }.items():
        assert after[name] - before.get(name, 0) == by, name
    assert after["medialedger_append_queue_age_seconds"] == 0
    assert after["medialedger_log_head_position"] == await last(inner)
    assert after['medialedger_http_requests_total{method="GET",route="/api/event/{id}",status="400",surface="media"}'] == 1


async def test_metrics_are_prometheus_text(anyone: httpx.AsyncClient) -> None:
    answer = await anyone.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert "# TYPE medialedger_http_requests_total counter" in answer.text
    assert "# HELP medialedger_append_batch_events " in answer.text


async def test_the_documentation_lists_every_declared_route(anyone: httpx.AsyncClient) -> None:
    document = (await anyone.get("/openapi.json")).json()
    documented = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert documented == {(spec.method, spec.documented_path) for spec in routes_of(ROUTES) if spec.include_in_schema}
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    assert all(operation["summary"].endswith(".") for operation in operations)
    page = await anyone.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "/openapi.json" in page.text


async def test_appends_and_lost_races_are_counted(anyone: httpx.AsyncClient, http: httpx.AsyncClient, inner: Core) -> None:
    before = await numbers(anyone)
    await add_room(http, "Hall")
    inner.executor.lost_races["claim"] += 2
    after = await numbers(anyone)
    assert after["medialedger_append_commit_seconds_count"] - before["medialedger_append_commit_seconds_count"] == 1
    assert after['medialedger_append_conflicts_total{lost="claim"}'] == 2


async def test_pools_of_connections_are_shown(anyone: httpx.AsyncClient, http: httpx.AsyncClient, inner: Core) -> None:
    timeouts = [f'medialedger_database_pool_timeouts_total{{pool="{pool}"}}' for pool in ("main", "lists")]
    before = await numbers(anyone)
    async with inner.database.connection():
        shown = await numbers(anyone)
        assert shown['medialedger_database_pool_in_use{pool="main"}'] >= 1
    for pool in ("main", "lists"):
        assert (
            0
            < shown[f'medialedger_database_pool_size{{pool="{pool}"}}']
            <= shown[f'medialedger_database_pool_max{{pool="{pool}"}}']
        )
    assert shown['medialedger_database_pool_requests_total{pool="lists"}'] > 0
    assert [shown[name] for name in timeouts] == [before[name] for name in timeouts], "earlier tests of this process count too"


async def test_the_process_and_the_build_are_shown(anyone: httpx.AsyncClient) -> None:
    shown = await numbers(anyone)
    assert shown['process_resident_memory_bytes{process="api 1"}'] > 10_000_000
    assert 0 < shown['process_open_fds{process="api 1"}'] < shown['process_max_fds{process="api 1"}']
    assert [value for name, value in shown.items() if name.startswith("medialedger_build_info{")] == [1]


async def test_what_keeps_the_loop_busy_is_seen() -> None:
    registry = CollectorRegistry()
    delay = LoopDelay(registry, every=0.01)
    await delay.start()
    try:
        while True:
            await asyncio.sleep(0)
            time.sleep(0.2)  # noqa: ASYNC251 - as a long computation does
            if (registry.get_sample_value("medialedger_event_loop_delay_seconds_sum") or 0) > 0.1:
                break
    finally:
        await delay.stop()

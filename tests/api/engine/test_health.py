"""The engine's health: docs/reference/api/job-engine.md#health."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import psycopg
from psycopg.conninfo import make_conninfo

from api.wiring.core import Core
from domain.job.values import JobState
from projections.consumers.leases import MemberState, ShardLeases
from projections.job.counts import JobCounts
from projections.kernel.database.database import Database
from tests.api.asking import engine_error
from tests.api.engine.jobs_given import bring, fail, openly, start, submit
from tests.api.serving import serving
from tests.projections.consuming import hold
from tests.support.application import introduce

NOTHING = {"workers": 0, "working": 0, "pending": 0}


async def health(engine: httpx.AsyncClient, **headers: str) -> dict[str, Any]:
    answer = await engine.get("/engine/health", headers=headers)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def test_the_engine_answers(engine: httpx.AsyncClient) -> None:
    for path in ("/engine/", "/engine"):
        answer = await openly(engine, path)
        assert (answer.status_code, answer.json()) == (200, {"result": "ok"})


async def test_without_jobs_all_counts_are_zero(engine: httpx.AsyncClient) -> None:
    shown = await health(engine)
    version = shown.pop("version")
    assert [part.isdigit() for part in version.split(".")] == [True] * 3
    states = ("completed", "failed", "pending", "broken", "queued", "started", "scheduled", "paused")
    assert shown == {
        "databases": {"cache_store": "ok", "relational_store": "ok"},
        "queues": dict.fromkeys(("work", "windows_capture", "scheduler", "controller", "callback"), NOTHING),
        "tasks": {"failed": 0, "pending": 0, "processed": 0},
        "jobs": {**dict.fromkeys(states, 0), "max_jobs": 2, "priority_slots": 0},
        "warnings": [],
    }


async def test_jobs_and_tasks_are_counted_for_the_client_only(engine: httpx.AsyncClient, inner: Core) -> None:
    studio = {"API-KEY": await introduce(inner, "studio", "operator"), "client": "studio"}
    for state in JobState:
        await bring(engine, inner, state)
    await fail(inner, await submit(engine), slot=999)
    await submit(engine, headers=studio)
    await engine.post("/engine/settings", json={"name": "max_jobs", "setting": 7})
    shown = await health(engine)
    states = ("pending", "broken", "queued", "started", "scheduled", "paused")
    assert shown["jobs"] == {**dict.fromkeys(states, 1), "completed": 2, "failed": 1, "max_jobs": 7, "priority_slots": 0}
    assert shown["tasks"] == {"failed": 1, "pending": 10, "processed": 3}
    theirs = await health(engine, **studio)
    assert (theirs["jobs"]["queued"], theirs["jobs"]["max_jobs"], theirs["tasks"]["pending"]) == (1, 2, 2)
    assert sum(theirs["jobs"].values()) == 1 + 2
    assert theirs["queues"] == shown["queues"]


async def test_queues_count_workers_and_waiting_work(engine: httpx.AsyncClient, inner: Core) -> None:
    await submit(engine)
    await start(inner, await submit(engine))
    await submit(engine, run_at="2031-06-01")
    await submit(engine, sempahore_url="https://semaphore.test/")
    await inner.database.execute("UPDATE job_view SET run_at = '2020-01-01' WHERE state = 5")
    await inner.database.execute(
        "INSERT INTO pending_deliveries (webhook, position, ordering_key, source, shard, payload, due_at, created_at)"
        " SELECT gen_random_uuid(), n, CASE WHEN n < 3 THEN 'job:1' ELSE 'x' END, (n < 3)::int, 0, '{}', now(), now()"
        " FROM generate_series(0, 9) AS n"
    )
    for name, busy in (("work", 2), ("work", 1), ("controller", 0)):
        await hold(ShardLeases(inner.database, name, shards=0, member=uuid4()), MemberState(busy))
    await hold(ShardLeases(inner.database, "scheduler", shards=0, member=uuid4()), MemberState(1))
    await inner.database.execute("UPDATE consumer_members SET seen_at = now() - interval '1 minute' WHERE consumer = 'scheduler'")
    assert (await health(engine))["queues"] == {
        "work": {"workers": 2, "working": 3, "pending": 1},
        "windows_capture": NOTHING,
        "scheduler": {"workers": 0, "working": 0, "pending": 2},
        "controller": {"workers": 1, "working": 0, "pending": 1},
        "callback": {"workers": 0, "working": 0, "pending": 3},
    }


async def test_a_database_that_is_down_is_503_with_an_error(inner: Core, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE short_lived")
        async with Database(make_conninfo(database_url, dbname="short_lived"), size=1) as gone:
            connection.execute("DROP DATABASE short_lived WITH (FORCE)")
            async with serving(inner, database_url, lambda _: {JobCounts: JobCounts(gone)}) as http:
                answer = await http.get("/engine/health", headers={"client": "other"})
    assert engine_error(answer, 503)
    assert answer.headers["retry-after"]


async def test_an_unforeseen_fault_is_500_with_an_error(inner: Core, database_url: str) -> None:
    elsewhere = Database(make_conninfo(database_url, dbname="postgres"), size=1)
    async with elsewhere, serving(inner, database_url, lambda _: {JobCounts: JobCounts(elsewhere)}) as http:
        assert engine_error(await http.get("/engine/health", headers={"client": "other"}), 500)


async def test_it_says_what_is_less_safe_on_the_machines_of_workers(engine: httpx.AsyncClient, inner: Core) -> None:
    for host, queue, warning in (
        ("b", "work", "open"),
        ("b", "windows_capture", "open"),
        ("a", "work", None),
        ("c", "relay", "other"),
    ):
        member = ShardLeases(inner.database, queue, shards=0, member=uuid4(), host=host)
        await hold(member, MemberState(warning=warning))
    assert (await health(engine))["warnings"] == ["b: open"]
    await inner.database.execute("UPDATE consumer_members SET seen_at = now() - interval '1 minute'")
    assert (await health(engine))["warnings"] == []


async def test_health_needs_a_key_with_the_role(engine: httpx.AsyncClient, inner: Core) -> None:
    assert engine_error(await openly(engine, "/engine/health"), 401)
    viewer = {"API-KEY": await introduce(inner, "viewer", "viewer"), "client": "viewer"}
    assert engine_error(await engine.get("/engine/health", headers=viewer), 403)

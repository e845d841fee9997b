"""Changing jobs over HTTP: the response, and the events that were appended."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from domain.job.values import JobState
from tests.api.asking import engine_error, last, logged, topics
from tests.api.engine.jobs_given import FUTURE, bring, single, start, submit
from tests.support.application import introduce

SEMAPHORE = "https://semaphore.test/open"


async def put(engine: httpx.AsyncClient, job: int, **body: Any) -> list[str]:
    answer = await engine.put(f"/engine/job/{job}", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json().keys() == {"id", "result"}
    assert answer.json()["id"] == job
    updates: list[str] = answer.json()["result"]
    return updates


async def test_each_update_is_listed_with_old_and_new_value(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await submit(engine)
    assert await put(engine, job, priority=8, client="admin") == ["priority updated from 5 to 8"]
    assert await put(engine, job, run_at=FUTURE) == [
        f"run_at updated from null to {FUTURE}",
        "queue_state updated from queued to scheduled",
    ]
    assert await put(engine, job, sempahore_url=SEMAPHORE) == [f"sempahore_url updated from null to {SEMAPHORE}"]
    assert await put(engine, job, sempahore_url="") == [f"sempahore_url updated from {SEMAPHORE} to null"]
    assert await put(engine, job, queue_state="paused", priority="1") == [
        "priority updated from 8 to 1",
        "queue_state updated from scheduled to paused",
    ]
    assert await put(engine, job, QUEUE_STATE=4) == ["queue_state updated from paused to broken"]
    shown = await single(engine, job)
    assert (shown["priority"], shown["queue_state"], shown["run_at"]) == (1, "broken", FUTURE)
    assert await topics(inner, f"job:{job}") == [
        "job.accepted",
        "job.priority_changed",
        "job.scheduled",
        "job.semaphore_changed",
        "job.semaphore_changed",
        "job.priority_changed",
        "job.paused",
        "job.broken",
    ]


async def test_a_change_that_changes_nothing_leaves_no_event(engine: httpx.AsyncClient, inner: Core) -> None:
    semaphore = f"{SEMAPHORE}?token=very-secret"
    job = await submit(engine, priority=3, run_at=FUTURE, sempahore_url=semaphore)
    before = await last(inner)
    for body in (
        {"priority": 3},
        {"run_at": "2031-06-01T02:00:00+02:00"},
        {"sempahore_url": semaphore},
        {"priority": 3, "run_at": FUTURE},
    ):
        assert await put(engine, job, **body) == []
    assert await last(inner) == before
    await put(engine, job, queue_state="paused")
    assert await put(engine, job, queue_state="paused") == []
    assert await last(inner) == before + 1


async def test_a_new_secret_of_the_semaphore_replaces_the_old_one(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await submit(engine, sempahore_url=f"{SEMAPHORE}?token=very-secret")
    assert await put(engine, job, sempahore_url=f"{SEMAPHORE}?token=other-secret") == [
        f"sempahore_url updated from {SEMAPHORE} to {SEMAPHORE}"
    ]
    assert await inner.database.row("SELECT count(*) FROM vault") == (1,)
    assert "secret" not in str((await logged(inner))[-1].data["semaphore"]["url"])
    await put(engine, job, sempahore_url=None)
    assert await inner.database.row("SELECT count(*) FROM vault") == (0,)
    assert (await single(engine, job))["queue_state"] == "queued"


@pytest.mark.parametrize("state", list(JobState))
@pytest.mark.parametrize("asked", [JobState.PAUSED, JobState.BROKEN])
async def test_any_job_can_be_paused_or_broken(engine: httpx.AsyncClient, inner: Core, state: JobState, asked: JobState) -> None:
    job = await bring(engine, inner, state)
    name = asked.name.lower()
    expected = [] if state is asked else [f"queue_state updated from {state.name.lower()} to {name}"]
    assert await put(engine, job, queue_state=name) == expected
    assert (await single(engine, job))["queue_state"] == name


async def test_only_a_paused_job_is_resumed(engine: httpx.AsyncClient, inner: Core) -> None:
    for state in JobState:
        job = await bring(engine, inner, state)
        before = await last(inner)
        answer = await engine.put(f"/engine/job/{job}", json={"queue_state": "queued"})
        if state is JobState.PAUSED:
            assert answer.json()["result"] == ["queue_state updated from paused to queued"]
        else:
            assert engine_error(answer, 400).startswith("queue_state: only a paused job can be queued")
            assert answer.json()["id"] == job
            assert await last(inner) == before


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, "body: must have one of queue_state, run_at, priority, sempahore_url"),
        ({"client": "admin"}, "body: must have one of"),
        ({"odd": 1}, "body: must have one of"),
        ({"client": "studio", "priority": 1}, "client: must be the client of the header"),
        ({"priority": 0}, "priority: 1 to 10"),
        ({"priority": None}, "priority: may not be null"),
        ({"queue_state": None, "run_at": None}, "queue_state: may not be null; run_at: may not be null"),
        ({"queue_state": "started"}, "queue_state: must be one of"),
        ({"queue_state": 1}, "queue_state: must be one of"),
        ({"run_at": "soon", "priority": 1}, "run_at: must be an ISO 8601"),
        ({"sempahore_url": "javascript:x", "priority": 1}, "sempahore_url: must be an absolute"),
        ({"queue_state": "queued", "priority": 1}, "queue_state: only a paused job"),
    ],
)
async def test_one_bad_field_changes_nothing(engine: httpx.AsyncClient, inner: Core, body: dict[str, Any], error: str) -> None:
    job = await submit(engine)
    before = await last(inner)
    answer = await engine.put(f"/engine/job/{job}", json=body)
    assert engine_error(answer, 400).startswith(error), answer.text
    assert answer.json()["id"] == job
    assert await last(inner) == before


async def test_time_and_semaphore_change_only_before_a_job_starts(engine: httpx.AsyncClient, inner: Core) -> None:
    for state in (JobState.STARTED, JobState.COMPLETED, JobState.BROKEN):
        job = await bring(engine, inner, state)
        for body in ({"run_at": FUTURE}, {"sempahore_url": SEMAPHORE}):
            assert engine_error(await engine.put(f"/engine/job/{job}", json=body), 400)
        assert await put(engine, job, priority=1) == ["priority updated from 5 to 1"]


async def test_an_unknown_job_is_400_with_its_number(engine: httpx.AsyncClient) -> None:
    answer = await engine.put("/engine/job/987654", json={"priority": 1})
    assert engine_error(answer, 400)
    assert answer.json()["id"] == 987654
    answer = await engine.put("/engine/job/none", json={"priority": 1})
    assert (engine_error(answer, 400).startswith("job_id: "), answer.json()["id"]) == (True, None)


async def test_a_client_changes_its_own_jobs_and_an_admin_all(engine: httpx.AsyncClient, inner: Core) -> None:
    studio = {"API-KEY": await introduce(inner, "studio", "operator"), "client": "studio"}
    ours, theirs = await submit(engine), await submit(engine, headers=studio)
    before = await last(inner)
    assert engine_error(await engine.put(f"/engine/job/{ours}", json={"priority": 1}, headers=studio), 403)
    assert engine_error(await engine.post(f"/engine/jobs/{ours}/rerun", headers=studio), 403)
    assert await last(inner) == before
    assert (await engine.put(f"/engine/job/{theirs}", json={"priority": 1}, headers=studio)).status_code == 200
    assert await put(engine, theirs, priority=2) == ["priority updated from 1 to 2"]


async def test_if_match_is_compared(engine: httpx.AsyncClient) -> None:
    job = await submit(engine)
    answer = await engine.put(f"/engine/job/{job}", json={"priority": 1}, headers={"If-Match": '"7"'})
    assert engine_error(answer, 412)
    answer = await engine.put(f"/engine/job/{job}", json={"priority": 1}, headers={"If-Match": '"1"'})
    assert (answer.status_code, answer.headers["etag"]) == (200, '"2"')
    assert engine_error(await engine.post(f"/engine/jobs/{job}/rerun", headers={"If-Match": '"1"'}), 412)
    assert (await engine.post(f"/engine/jobs/{job}/rerun", headers={"If-Match": '"2"'})).status_code == 200


async def test_concurrent_changes_are_each_listed_as_they_were_made(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await submit(engine)
    await start(inner, job)
    reported = await asyncio.gather(*(put(engine, job, priority=priority) for priority in (1, 2, 3, 4, 6, 7, 8, 9, 10)))
    changed = [event.data for event in await logged(inner, f"job:{job}") if event.topic == "job.priority_changed"]
    words = [f"priority updated from {data['previous']} to {data['priority']}" for data in changed]
    assert sorted(update for updates in reported for update in updates) == sorted(words)
    assert len(words) == 9


async def test_the_audit_shows_a_past_state_of_a_job(engine: httpx.AsyncClient) -> None:
    job = await submit(engine)
    shown = await single(engine, job)
    assert (await engine.put(f"/engine/job/{job}", json={"priority": 8})).status_code == 200
    then = (await engine.get(f"/api/audit/job/{job}/state?version=1")).json()
    assert then["state"] == {name: value for name, value in {**shown, "position": 0}.items() if name != "top_of_queue"}
    assert (await engine.get(f"/api/audit/job/{job}/state")).json()["state"]["priority"] == 8

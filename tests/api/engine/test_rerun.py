"""Reruns over HTTP: the old job becomes broken, a new job with the same parameters is accepted."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from api.wiring.core import Core
from domain.job.values import JobState
from tests.api.asking import engine_error, last, logged, topics
from tests.api.engine.jobs_given import FETCH, bring, fail, single, submit
from tests.support.application import introduce

WITH_SECRET = {**FETCH, "custom_data": {"password": "hunter22"}}


async def rerun(engine: httpx.AsyncClient, job: int) -> int:
    answer = await engine.post(f"/engine/jobs/{job}/rerun")
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"id": answer.json()["id"], "result": "accepted"}
    return int(answer.json()["id"])


@pytest.mark.parametrize("state", list(JobState))
async def test_a_job_in_any_state_is_rerun(engine: httpx.AsyncClient, inner: Core, state: JobState) -> None:
    old = await bring(engine, inner, state, parameters=WITH_SECRET, priority=7)
    before = await last(inner)
    new = await rerun(engine, old)
    appended = [(event.topic, event.stream) for event in (await logged(inner))[before:]]
    broken = [] if state is JobState.BROKEN else [("job.broken", f"job:{old}")]
    assert sorted(appended) == sorted([("job.accepted", f"job:{new}"), *broken])
    assert (await single(engine, old))["queue_state"] == "broken"
    shown = await single(engine, new)
    assert (shown["queue_state"], shown["priority"], shown["run_at"], shown["client"]) == ("queued", 7, None, "admin")
    assert shown["parameters"] == {**FETCH, "custom_data": {"password": "****"}}


async def test_reruns_at_the_same_time_give_different_jobs(engine: httpx.AsyncClient, inner: Core) -> None:
    old = await submit(engine)
    new = await asyncio.gather(*(rerun(engine, old) for _ in range(8)))
    assert len(set(new)) == 8
    assert await topics(inner, f"job:{old}") == ["job.accepted", "job.broken"]


async def test_a_failed_job_is_rerun(engine: httpx.AsyncClient, inner: Core) -> None:
    old = await submit(engine)
    await fail(inner, old)
    assert (await single(engine, old))["failed"] is True
    new = await rerun(engine, old)
    assert (await single(engine, new))["failed"] is False
    assert (await single(engine, old))["queue_state"] == "broken"


async def test_a_repeat_with_an_idempotency_key_reruns_once(engine: httpx.AsyncClient, inner: Core) -> None:
    old = await submit(engine)
    answers = [await engine.post(f"/engine/jobs/{old}/rerun", headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert await topics(inner, f"job:{old}") == ["job.accepted", "job.broken"]


async def test_an_admin_reruns_a_job_of_another_client_for_that_client(engine: httpx.AsyncClient, inner: Core) -> None:
    studio = {"API-KEY": await introduce(inner, "studio", "operator"), "client": "studio"}
    new = await rerun(engine, await submit(engine, headers=studio))
    assert (await single(engine, new))["client"] == "studio"


async def test_an_unknown_job_is_400(engine: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    for number in ("987654", "-1", "x", "9" * 30):
        answer = await engine.post(f"/engine/jobs/{number}/rerun")
        assert engine_error(answer, 400)
        assert "id" not in answer.json()
    assert await last(inner) == before

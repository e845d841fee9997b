"""Running a job again: the original becomes broken, a new one with the same parameters is accepted. Document 3, POST
/jobs/<job id>/rerun; the known fault "rerun that fails" of issue 7."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from api.core import Core
from domain.job.values import JobState
from domain.kernel.sealed import Sealer
from projections.vault.vault import Vault
from tests.api.asking import engine_error, last, logged, topics
from tests.api.engine.jobs_given import FETCH, FUTURE, bring, fail, single, submit
from tests.conftest import introduce

WITH_SECRET = {**FETCH, "custom_data": {"password": "hunter22"}}


async def rerun(engine: httpx.AsyncClient, job: int) -> int:
    answer = await engine.post(f"/engine/jobs/{job}/rerun")
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"id": answer.json()["id"], "result": "accepted"}
    return int(answer.json()["id"])


@pytest.mark.parametrize("state", list(JobState))
async def test_a_job_in_any_state_is_run_again(engine: httpx.AsyncClient, inner: Core, state: JobState) -> None:
    old = await bring(engine, inner, state, parameters=WITH_SECRET, priority=7)
    before = await last(inner)
    new = await rerun(engine, old)
    appended = [(one.topic, one.stream) for one in (await logged(inner))[before:]]
    broken = [] if state is JobState.BROKEN else [("job.broken", f"job:{old}")]
    assert sorted(appended) == sorted([("job.accepted", f"job:{new}"), *broken])
    assert (await single(engine, old))["queue_state"] == "broken"
    shown = await single(engine, new)
    assert (shown["queue_state"], shown["priority"], shown["run_at"], shown["client"]) == ("queued", 7, None, "admin")
    assert shown["parameters"] == {**FETCH, "custom_data": {"password": "****"}}


async def test_the_new_job_has_all_parameters_sealed_anew(engine: httpx.AsyncClient, inner: Core) -> None:
    old = await submit(engine, WITH_SECRET)
    new = await rerun(engine, old)
    refs = [(await logged(inner, f"job:{job}"))[0].data["submission"]["sealed_parameters"] for job in (old, new)]
    assert refs[0] != refs[1]
    vault = Vault(inner.database, Sealer(bytes(32)))
    assert [json.loads(await vault.opened(ref["reference"]) or "") for ref in refs] == [WITH_SECRET, WITH_SECRET]


async def test_twice_in_a_row_and_of_a_rerun(engine: httpx.AsyncClient, inner: Core) -> None:
    first = await submit(engine)
    second, third = await rerun(engine, first), await rerun(engine, first)
    fourth = await rerun(engine, third)
    assert len({first, second, third, fourth}) == 4
    states = [(await single(engine, job))["queue_state"] for job in (first, second, third, fourth)]
    assert states == ["broken", "queued", "broken", "queued"]
    assert await topics(inner, f"job:{first}") == ["job.accepted", "job.broken"]
    of = [(await logged(inner, f"job:{job}"))[0].data["rerun_of"] for job in (second, third, fourth)]
    assert of == [first, first, third]
    assert (await logged(inner, f"job:{first}"))[1].data["rerun_as"] == second


async def test_many_at_once_all_find_their_own_new_job(engine: httpx.AsyncClient, inner: Core) -> None:
    old = await submit(engine)
    new = await asyncio.gather(*(rerun(engine, old) for _ in range(8)))
    assert len(set(new)) == 8
    assert await topics(inner, f"job:{old}") == ["job.accepted", "job.broken"]


async def test_a_failed_job_is_run_again(engine: httpx.AsyncClient, inner: Core) -> None:
    old = await submit(engine)
    await fail(inner, old)
    assert (await single(engine, old))["failed"] is True
    new = await rerun(engine, old)
    assert (await single(engine, new))["failed"] is False
    assert (await single(engine, old))["queue_state"] == "broken"


async def test_a_time_and_a_gate_are_not_kept_and_callbacks_are(engine: httpx.AsyncClient, inner: Core) -> None:
    parameters = {**FETCH, "callback_urls": ["https://hooks.test/a"]}
    old = await submit(engine, parameters, run_at=FUTURE, sempahore_url="https://gate.test/")
    webhooks = await last(inner)
    new = await rerun(engine, old)
    assert await last(inner) == webhooks + 2
    told = [(await logged(inner, f"job:{job}"))[0].data for job in (old, new)]
    assert told[0]["submission"]["callbacks"] == told[1]["submission"]["callbacks"] != []
    assert told[1].keys().isdisjoint({"run_at", "gate"})


async def test_the_same_request_with_a_key_runs_it_again_once(engine: httpx.AsyncClient, inner: Core) -> None:
    old = await submit(engine)
    answers = [await engine.post(f"/engine/jobs/{old}/rerun", headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert await topics(inner, f"job:{old}") == ["job.accepted", "job.broken"]


async def test_an_admin_runs_another_clients_job_again_and_it_stays_theirs(engine: httpx.AsyncClient, inner: Core) -> None:
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

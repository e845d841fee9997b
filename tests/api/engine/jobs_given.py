"""Jobs submitted over HTTP, and commands that stand for the engine's work on them."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import httpx

from api.wiring.core import Core
from domain.job.aggregate import Job, RetryPolicy
from domain.job.values import JobState, Result
from domain.kernel.command import Command
from domain.kernel.ports import Invocation
from tests.domain.channel.texts_given import FLOW

FETCH = {"content_id": "film", "url": "https://origin.test/a.mp4"}
PROBE = {"content_id": "film", "file": "a.mp4"}
FUTURE = "2031-06-01T00:00:00.000Z"
NEVER = RetryPolicy(0, timedelta(0))


def request(parameters: dict[str, Any] | None = None, workflow: str = "http_fetch_verify", **job: Any) -> dict[str, Any]:
    return {"job": {"workflow": workflow, **job}, "parameters": FETCH if parameters is None else parameters}


def flow(*urls: str) -> Any:
    """The configuration of a flow with these callback URLs."""
    document = copy.deepcopy(FLOW)
    document["flows"][0]["taskEngineSpecific"]["callbackUrls"] = list(urls)
    return document


async def submit(
    engine: httpx.AsyncClient, parameters: dict[str, Any] | None = None, headers: dict[str, str] | None = None, **job: Any
) -> int:
    answer = await engine.post("/engine/job", json=request(parameters, **job), headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.json().keys() == {"id", "result"}
    assert answer.json()["result"] == "accepted"
    return int(answer.json()["id"])


async def openly(engine: httpx.AsyncClient, path: str, **query: Any) -> httpx.Response:
    """A request without a key and without the header client."""
    asked = engine.build_request("GET", path, params=query or None)
    del asked.headers["client"], asked.headers["api-key"]
    return await engine.send(asked)


async def single(engine: httpx.AsyncClient, job: int) -> dict[str, Any]:
    answer = await openly(engine, f"/engine/jobs/{job}")
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def do(inner: Core, command: Command[Job]) -> Job:
    return (await inner.executor.execute(command, invocation=Invocation.by("system"))).aggregate


async def start(inner: Core, job: int, *, slot: int = 1) -> Job:
    result = await inner.streams.load(Job.stream(job))
    assert isinstance(result, Job)
    return await do(inner, Job.start.on(job, slot=slot, low_slot=None, priority=result.priority))


async def complete(inner: Core, job: int, *, slot: int = 1) -> Job:
    root = await start(inner, job, slot=slot)
    for task in root.tasks:
        await do(inner, Job.start_task.on(job, task, run=1, worker="host 1"))
        root = await do(inner, Job.complete_task.on(job, task, run=1, result=Result(message="done")))
    return root


async def fail(inner: Core, job: int, *, slot: int = 1) -> Job:
    await start(inner, job, slot=slot)
    await do(inner, Job.start_task.on(job, 1, run=1, worker="host 1"))
    return await do(inner, Job.fail_task.on(job, 1, run=1, error="no such host", retries=NEVER))


async def bring(engine: httpx.AsyncClient, inner: Core, state: JobState, **fields: Any) -> int:
    """A job in this state."""
    waits = {JobState.SCHEDULED: {"run_at": FUTURE}, JobState.PENDING: {"sempahore_url": "https://semaphore.test/open"}}
    job = await submit(engine, **{**waits.get(state, {}), **fields})
    if state is JobState.STARTED:
        await start(inner, job, slot=job)
    elif state is JobState.COMPLETED:
        await complete(inner, job, slot=job)
    elif state in (JobState.PAUSED, JobState.BROKEN):
        answer = await engine.put(f"/engine/job/{job}", json={"queue_state": state.name.lower()})
        assert answer.status_code == 200, answer.text
    assert (await single(engine, job))["queue_state"] == state.name.lower()
    return job


async def come_due(inner: Core, job: int) -> Job:
    root = await inner.streams.load(Job.stream(job))
    assert isinstance(root, Job)
    return await do(inner, Job.queue.on(job, run_at=root.run_at, semaphore=root.semaphore))

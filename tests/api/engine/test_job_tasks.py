"""The tasks of a job with their runs: docs/reference/api/job-engine.md#tasks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx

from api.wiring.core import Core
from domain.job.aggregate import Job, RetryPolicy
from domain.job.values import Output, Result
from projections.job.log_lines import Progress, write
from projections.job.queue import QueuedRun
from tests.api.asking import logged
from tests.api.engine.jobs_given import NEVER, do, openly, start, submit

ONCE_MORE = RetryPolicy(3, timedelta(0))


async def tasks(engine: httpx.AsyncClient, job: int) -> list[dict[str, Any]]:
    answer = await engine.get(f"/engine/jobs/{job}/tasks")
    assert answer.status_code == 200, answer.text
    shown: list[dict[str, Any]] = answer.json()["tasks"]
    return shown


async def test_every_run_is_shown_with_how_it_ended(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await submit(engine)
    first, second = await tasks(engine, job)
    assert (first["name"], first["state"], first["after"], first["runs"]) == ("fetch", "waiting", [], [])
    assert (second["name"], second["after"]) == ("store", [1])
    await start(inner, job)
    await do(inner, Job.start_task.on(job, 1, run=1, worker="host 1"))
    await do(inner, Job.fail_task.on(job, 1, run=1, error="no such host", retries=ONCE_MORE))
    await do(inner, Job.start_task.on(job, 1, run=2, worker="host 2"))
    await do(inner, Job.expire_lease.on(job, 1, run=2, retries=ONCE_MORE))
    await do(inner, Job.start_task.on(job, 1, run=3, worker="host 1"))
    await write(inner.database, lines=[], progress=[Progress(QueuedRun(job, 1, 3), 0.25, "1 of 4 bytes")])
    first = (await tasks(engine, job))[0]
    assert (first["state"], first["attempts"], first["fraction"], first["message"]) == ("running", 3, 0.25, "1 of 4 bytes")
    reported = [(run["attempt"], run["worker"], run["outcome"], run["error"]) for run in first["runs"]]
    assert reported == [
        (1, "host 1", "failed", "no such host"),
        (2, "host 2", "lost", "The worker was lost."),
        (3, "host 1", "running", None),
    ]
    assert [run["ended_at"] is None for run in first["runs"]] == [False, False, True]
    await engine.put(f"/engine/job/{job}", json={"queue_state": "broken"})
    assert (await tasks(engine, job))[0]["runs"][-1]["outcome"] == "broken"


async def test_files_are_shown_when_they_are_published(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await submit(engine)
    await start(inner, job)
    await do(inner, Job.start_task.on(job, 1, run=1, worker="host 1"))
    await do(inner, Job.complete_task.on(job, 1, run=1, result=None))
    await do(inner, Job.start_task.on(job, 2, run=1, worker="host 1"))
    made = Output(path="a.mp4", name="film/a.mp4", size=7, sha256="0" * 64)
    await do(inner, Job.commit_outputs.on(job, 2, run=1, outputs=(made,), result=Result(message="stored")))
    second = (await tasks(engine, job))[1]
    assert (second["state"], second["files"]) == ("publishing", [{"path": "film/a.mp4", "size": 7}])
    await do(inner, Job.complete_task.on(job, 2, run=1, result=None))
    second = (await tasks(engine, job))[1]
    assert (second["state"], second["message"], second["runs"][0]["outcome"]) == ("completed", "stored", "completed")


async def test_of_an_unknown_job_or_one_of_another_client_there_are_none(engine: httpx.AsyncClient) -> None:
    job = await submit(engine)
    for path, headers in ((job + 1, {}), (job, {"client": "another"})):
        answer = await engine.get(f"/engine/jobs/{path}/tasks", headers={"API-KEY": "", "client": "admin", **headers})
        assert answer.status_code == 400
        assert "error" in answer.json()


async def test_what_the_job_itself_does_not_show(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await submit(engine)
    before = await logged(inner)
    shown = (await engine.get(f"/engine/jobs/{job}/tasks")).json()
    assert await logged(inner) == before
    assert (shown["id"], shown["content_id"], shown["reason"], shown["semaphore_url"]) == (job, "film", None, None)
    await start(inner, job)
    await do(inner, Job.start_task.on(job, 1, run=1, worker="host 1"))
    await do(inner, Job.fail_task.on(job, 1, run=1, error="no such host", retries=NEVER))
    shown = (await engine.get(f"/engine/jobs/{job}/tasks")).json()
    first, second = shown["tasks"]
    assert (first["task_id"], first["worker"], first["started_at"] is None) == (1, "host 1", False)
    assert second["state"] == "cancelled"
    assert shown["reason"] == "the task fetch failed: no such host"


async def test_the_tasks_of_several_jobs(engine: httpx.AsyncClient) -> None:
    first, other = await submit(engine), await submit(engine)
    shown = (await openly(engine, "/engine/tasks", job_ids=f"{first},{other},999999")).json()
    assert [(task["job_id"], task["task_id"], task["state"]) for task in shown] == [
        (first, 1, "waiting"),
        (first, 2, "waiting"),
        (other, 1, "waiting"),
        (other, 2, "waiting"),
    ]

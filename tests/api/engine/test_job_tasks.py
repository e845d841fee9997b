"""Tasks of jobs over HTTP."""

from __future__ import annotations

import httpx
import pytest

from api.wiring.core import Core
from domain.job.commands import FailTask, StartTask
from tests.api.asking import logged
from tests.api.engine.jobs_given import NEVER, do, openly, start, submit


async def test_the_tasks_of_a_job(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await submit(engine)
    before = await logged(inner)
    shown = (await openly(engine, f"/engine/jobs/{job}/tasks")).json()
    assert await logged(inner) == before
    assert {name: shown[name] for name in ("id", "content_id", "reason", "semaphore_url")} == {
        "id": job,
        "content_id": "film",
        "reason": None,
        "semaphore_url": None,
    }
    assert [(one["task_id"], one["name"], one["state"]) for one in shown["tasks"]] == [
        (1, "fetch", "waiting"),
        (2, "store", "waiting"),
    ]
    await start(inner, job)
    await do(inner, StartTask(job, 1, 1, "host 1"))
    await do(inner, FailTask(job, 1, 1, "no such host", NEVER))
    shown = (await openly(engine, f"/engine/jobs/{job}/tasks")).json()
    first = shown["tasks"][0]
    assert (first["state"], first["attempts"], first["worker"], first["error"]) == ("failed", 1, "host 1", "no such host")
    assert shown["tasks"][1]["state"] == "cancelled"
    assert shown["reason"] == "the task fetch failed: no such host"


async def test_the_tasks_of_several_jobs(engine: httpx.AsyncClient) -> None:
    one, other = await submit(engine), await submit(engine)
    shown = (await openly(engine, "/engine/tasks", job_ids=f"{one},{other},999999")).json()
    assert [(task["job_id"], task["task_id"], task["state"]) for task in shown] == [
        (one, 1, "waiting"),
        (one, 2, "waiting"),
        (other, 1, "waiting"),
        (other, 2, "waiting"),
    ]


@pytest.mark.parametrize("path", ["/engine/jobs/999999/tasks", "/engine/jobs/x/tasks"])
async def test_what_is_not_there_is_400(engine: httpx.AsyncClient, path: str) -> None:
    answer = await openly(engine, path)
    assert (answer.status_code, answer.json().keys()) == (400, {"error"})

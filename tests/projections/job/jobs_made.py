"""Jobs in a real log, by short ways. Tasks are due by the database's clock, so the log's clock has to be about the same here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from api.wiring.core import Core
from domain.job.aggregate import Job, RetryPolicy
from domain.job.values import Output, Result, Submission, TaskPlan
from tests.support.feeding import do

ONE = (TaskPlan(id=1, name="fetch"),)
THREE = (*ONE, TaskPlan(id=2, name="check", after=(1,)), TaskPlan(id=3, name="grab", queue="windows_capture", after=(1,)))
OUTPUTS = (Output(path="b.mp4", name="a/b.mp4", size=3, sha256="00"),)
AT_ONCE = RetryPolicy(limit=3, delay=timedelta(0))


def present() -> datetime:
    """A little before now."""
    return datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=1)


async def accept(inner: Core, number: int, *tasks: TaskPlan, client: str = "studio", priority: int = 5, **more: Any) -> Job:
    facts = {"workflow": "any", "content_id": "a", "parameters": {}, "tasks": tasks or ONE}
    asked = {name: more.pop(name) for name in ("run_at", "semaphore") if name in more}
    sealed = more.pop("sealed", ())
    accept = Job.accept.on(number, Submission(client=client, **{**facts, **more}), priority=priority, **asked)
    return await do(inner, accept.with_secrets(sealed))


async def start(inner: Core, number: int, *, slot: int, low_slot: int | None = None) -> Job:
    job = await inner.streams.load(Job.stream(number))
    assert isinstance(job, Job)
    return await do(inner, Job.start.on(number, slot=slot, low_slot=low_slot, priority=job.priority))


async def started(inner: Core, number: int, *tasks: TaskPlan, **more: Any) -> Job:
    """Accepted and started, in the slot of its own number."""
    await accept(inner, number, *tasks, **more)
    return await start(inner, number, slot=number)


async def begin(inner: Core, number: int, task: int = 1, run: int = 1) -> Job:
    return await do(inner, Job.start_task.on(number, task, run=run, worker="w"))


async def fail(inner: Core, number: int, task: int = 1, run: int = 1, *, retries: RetryPolicy = AT_ONCE) -> Job:
    return await do(inner, Job.fail_task.on(number, task, run=run, error="no", retries=retries))


async def commit(inner: Core, number: int, task: int = 1, run: int = 1) -> Job:
    return await do(inner, Job.commit_outputs.on(number, task, run=run, outputs=OUTPUTS, result=Result(message="done")))


async def complete(inner: Core, number: int, task: int = 1, run: int = 1) -> Job:
    return await do(inner, Job.complete_task.on(number, task, run=run, result=Result(message="done")))


async def update(inner: Core, number: int, **changes: object) -> Job:
    return await do(inner, Job.update.on(number, changes))

"""Jobs with callbacks, and their histories, made by the commands of the engine."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from api.wiring.core import Core
from domain.job.aggregate import Job, RetryPolicy
from domain.job.values import Output, Result, Submission, TaskPlan
from domain.kernel.encryption import SecretRef
from domain.kernel.named_callback import NamedCallback
from tests.support.feeding import do

PLANS = (TaskPlan(id=1, name="fetch"), TaskPlan(id=2, name="verify", after=(1,)))
RETRIES = RetryPolicy(limit=1, delay=timedelta(seconds=30))
FILES = ("film/a.mp4", "film/b.mp4")
FETCHED = Result(message="2 files", files=FILES, metadata={"bytes": 7})
OUTPUTS = tuple(Output(path=name, name=name, size=1, sha256="00") for name in FILES)


def callback(key: UUID, sealed_url: UUID | None = None) -> NamedCallback:
    secret = None if sealed_url is None else SecretRef(reference=sealed_url, fingerprint="")
    return NamedCallback(id=key, url="https://hooks.test/job", sealed_url=secret)


def submission(*callbacks: UUID | NamedCallback, **parameters: Any) -> Submission:
    return Submission(
        client="studio",
        workflow="http_fetch_verify",
        content_id="film",
        parameters=parameters,
        tasks=PLANS,
        callbacks=tuple(callback(entry) if isinstance(entry, UUID) else entry for entry in callbacks),
    )


async def accept(inner: Core, number: int, *callbacks: UUID | NamedCallback, **parameters: Any) -> None:
    await do(inner, Job.accept.on(number, submission(*callbacks, **parameters)))


async def start(inner: Core, number: int, *, slot: int = 1) -> None:
    await do(inner, Job.start.on(number, slot=slot, low_slot=None, priority=5))


async def start_task(inner: Core, number: int, task: int, *, run: int = 1) -> None:
    await do(inner, Job.start_task.on(number, task, run=run, worker="worker-1"))


async def complete_task(inner: Core, number: int, task: int, *, run: int = 1, **result: Any) -> None:
    await do(inner, Job.complete_task.on(number, task, run=run, result=Result(**result)))


async def complete(inner: Core, number: int, *callbacks: UUID | NamedCallback, slot: int = 1, **parameters: Any) -> None:
    """Append the events of a job from the first to the last."""
    await accept(inner, number, *callbacks, **parameters)
    await start(inner, number, slot=slot)
    await start_task(inner, number, 1)
    await do(inner, Job.commit_outputs.on(number, 1, run=1, outputs=OUTPUTS, result=FETCHED))
    await do(inner, Job.complete_task.on(number, 1, run=1))
    await start_task(inner, number, 2)
    await complete_task(inner, number, 2, message="all is well", metadata={"duration": 1.5})

"""How the engine is: document 3, GET /health; decisions.md, "Job engine"."""

from __future__ import annotations

import asyncio

from api.engine.surface import ENGINE
from api.engine.wire import Spoken, engine_version
from api.kernel.answer import Answer
from api.kernel.auth import WRITE
from api.kernel.call import Call
from api.kernel.routes import Routes
from domain.job.values import JobState, TaskState
from projections.job.counts import ClientCounts, JobCounts
from projections.job.settings import EngineSettingsQueries

routes = Routes(surface=ENGINE, tag="Job engine")

_NEVER_STORED = ("cache-control", "no-store")
_OK = "ok"


class DatabasesWire(Spoken):
    cache_store: str
    relational_store: str


class QueueWire(Spoken):
    workers: int
    working: int
    pending: int


class QueuesWire(Spoken):
    windows_capture: QueueWire
    scheduler: QueueWire
    work: QueueWire
    controller: QueueWire
    callback: QueueWire


class TasksWire(Spoken):
    failed: int
    pending: int
    processed: int


class JobsWire(Spoken):
    completed: int
    failed: int
    pending: int
    broken: int
    queued: int
    started: int
    scheduled: int
    paused: int
    max_jobs: int
    priority_slots: int


class EngineHealthWire(Spoken):
    version: str
    databases: DatabasesWire
    queues: QueuesWire
    tasks: TasksWire
    jobs: JobsWire


@routes.get("/health", WRITE, answers=EngineHealthWire)
async def engine_health(call: Call, counts: JobCounts, settings: EngineSettingsQueries) -> Answer:
    """How many jobs and tasks the client has of each kind, its limits, and who works on each queue, for all clients.

    `relational_store` is the PostgreSQL that holds the log and the views, `cache_store` the tables of leases and progress, which
    lie in the same one. Failed jobs and tasks are among those that are completed or processed."""
    client = call.caller.name
    found, queues, chosen = await asyncio.gather(counts.of(client), counts.queues(), settings.of([client]))
    limits = chosen[client]
    shown = {
        "version": engine_version(),
        "databases": {"cache_store": _OK, "relational_store": _OK},
        "queues": queues,
        "tasks": _tasks(found),
        "jobs": {**_jobs(found), "max_jobs": limits.max_jobs, "priority_slots": limits.priority_slots},
    }
    return Answer(200, shown, headers=(_NEVER_STORED,))


def _tasks(found: ClientCounts) -> dict[str, int]:
    failed = found.tasks.get(TaskState.FAILED, 0)
    pending = sum(found.tasks.get(state, 0) for state in (TaskState.WAITING, TaskState.READY))
    return {"failed": failed, "pending": pending, "processed": found.tasks.get(TaskState.COMPLETED, 0) + failed}


def _jobs(found: ClientCounts) -> dict[str, int]:
    return {**{state.name.lower(): found.jobs.get(state, 0) for state in JobState}, "failed": found.failed}

"""Jobs: document 3, "Job engine": they are accepted, changed, run again, and read. Reading needs no key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from api.engine.submission import JobSecrets, Submissions, address, check_client
from api.engine.surface import ENGINE
from api.engine.wire import (
    AcceptedWire,
    AskedState,
    JobBody,
    JobChangeBody,
    SingleJobWire,
    UpdatedWire,
    shown,
)
from api.kernel.answer import Answer, iso
from api.kernel.auth import OPEN, WRITE, Role
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.errors import Forbidden
from api.kernel.routes import Routes
from api.kernel.wire import Wire
from domain.job.aggregate import Job
from domain.job.commands import UpdateJob
from domain.job.values import Gate, JobState
from domain.kernel.errors import FieldError, Malformed, NotFound
from projections.job.queries import JobQueries, JobRow
from projections.vault.vault import Vault

routes = Routes(surface=ENGINE, tag="Job engine")

_GATE: Final = "sempahore_url"
_NEVER_NULL: Final = ("queue_state", "run_at", "priority")
_CHANGEABLE: Final = (*_NEVER_NULL, _GATE)


class AliveWire(Wire):
    result: str


@routes.get("/", OPEN, answers=AliveWire)
async def alive(call: Call) -> Answer:
    """The engine answers."""
    return Answer(200, {"result": "ok"})


@routes.post("/job", WRITE, answers=AcceptedWire)
async def submit_job(call: Call, body: JobBody, submissions: Submissions) -> Answer:
    """Hand a job in. It is queued at once, unless it has a time or a gate to wait for."""
    return await submissions.submit(call, body)


@routes.put("/job/{job_id}", WRITE, answers=UpdatedWire)
async def update_job(call: Call, job_id: int, body: JobChangeBody, bus: CommandBus, jobs: JobQueries, vault: Vault) -> Answer:
    """Pause, resume or break a job off, or change its priority, time or gate; all or nothing."""
    _check(call, body)
    gate = address(body.sempahore_url, field=_GATE)
    await _check_own(call, jobs, job_id)
    changes, secrets = _changes(body), JobSecrets(vault, job_id)
    if _GATE in body.model_fields_set:
        changes["gate"] = secrets.gate(gate)

    async def show(job: Job) -> Answer:
        before = await jobs.by_id(job_id)
        updates = [] if before is None or before.version >= job.version else _updates(before, job)
        return Answer(200, {"id": job_id, "result": updates}, etag=job.version)

    return await bus.send(call, UpdateJob(job_id, changes, sealed=tuple(secrets.sealed)), show)


@routes.post("/jobs/{job_id}/rerun", WRITE, answers=AcceptedWire)
async def rerun_job(call: Call, job_id: int, submissions: Submissions, jobs: JobQueries) -> Answer:
    """Break a job off, whatever its state, and hand in another with the same parameters. The id is the new job's."""
    await _check_own(call, jobs, job_id)
    return await submissions.rerun(call, job_id)


@routes.get("/jobs/{job_id}", OPEN, answers=SingleJobWire)
async def job_by_id(call: Call, job_id: int, jobs: JobQueries) -> Answer:
    """One job. With the header client only one of that client's is found."""
    job = await jobs.by_id(job_id, call.header("client"), place=True)
    if job is None:
        raise NotFound(Job.KIND, str(job_id))
    return Answer(200, {**shown(job), "top_of_queue": job.position == 1}, etag=job.version)


def _check(call: Call, body: JobChangeBody) -> None:
    check_client(call, body.client)
    if body.model_fields_set.isdisjoint(_CHANGEABLE):
        raise Malformed.at("body", f"must have one of {', '.join(_CHANGEABLE)}")
    nulls = [name for name in _NEVER_NULL if name in body.model_fields_set and getattr(body, name) is None]
    if nulls:
        raise Malformed(*(FieldError(name, "may not be null") for name in nulls))


async def _check_own(call: Call, jobs: JobQueries, job_id: int) -> None:
    """A client changes its own jobs, an admin any."""
    job = await jobs.by_id(job_id)
    if job is None:
        raise NotFound(Job.KIND, str(job_id))
    if job.client != call.caller.name and Role.ADMIN not in call.caller.roles:
        raise Forbidden("The job belongs to another client.")


def _changes(body: JobChangeBody) -> dict[str, object]:
    wanted: dict[str, object] = {"run_at": body.run_at, "priority": body.priority, "queue_state": _state(body.queue_state)}
    return {name: value for name, value in wanted.items() if value is not None}


def _state(asked: AskedState | None) -> JobState | None:
    return None if asked is None else JobState(asked)


def _updates(before: JobRow, job: Job) -> Sequence[str]:
    """`before` was read after the decision: if anybody else had written in between, the append fails and all this is done again."""
    pairs: list[tuple[str, Any, Any]] = [
        ("priority", before.priority, job.priority),
        (_GATE, before.gate, job.gate),
        ("run_at", before.run_at, job.run_at),
        ("queue_state", before.state, job.state),
    ]
    return [f"{name} updated from {_worded(old)} to {_worded(new)}" for name, old, new in pairs if old != new]


def _worded(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, JobState):
        return value.name.lower()
    if isinstance(value, Gate):
        return value.url
    return str(value) if isinstance(value, int) else iso(value)

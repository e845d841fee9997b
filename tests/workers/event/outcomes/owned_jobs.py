"""Jobs that a room owns: an outcome of a job becomes the name of the room, so repeating it changes nothing."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from api.wiring.core import Core
from domain.job.aggregate import Job
from domain.job.outcome import JobOutcome
from domain.job.values import Output, Result, Submission, TaskPlan
from domain.kernel.command import Command
from domain.kernel.ports import Invocation, Plan
from domain.record.kinds.room import Room
from domain.record.record import RegisterRecord
from tests.support.feeding import do

ROOM = UUID(int=1)
OTHER = UUID(int=2)
OUTPUT = Output(path="goal.jpg", name="film/assets/goal.jpg", size=7, sha256="00")


def named(outcome: JobOutcome) -> str:
    return " ".join([f"{outcome.kind.value} {outcome.job}", *(f"{file.name} {file.size}" for file in outcome.files)])


def rename(key: str, outcome: JobOutcome) -> Command[Any]:
    return Room.amend.on(UUID(key), {"name": named(outcome)})


def submission(owner: UUID | None) -> Submission:
    stream = None if owner is None else Room.stream(owner)
    task = TaskPlan(id=1, name="make")
    return Submission(client="studio", workflow="make", content_id="film", parameters={}, tasks=(task,), owner=stream)


async def owned(inner: Core, number: int, owner: UUID = ROOM) -> None:
    """Create a room and its job in one append."""

    async def plan() -> Plan:
        accept = Job.accept.on(number, submission(owner), transaction_id=f"transaction {number}")
        return Plan((RegisterRecord(owner, Room, {"name": "requested"}), accept))

    await inner.executor.execute(plan, invocation=Invocation.by("studio"))


async def accept(inner: Core, number: int, *, owner: UUID | None = None, rerun_of: int | None = None) -> None:
    await do(inner, Job.accept.on(number, submission(owner), rerun_of=rerun_of))


async def complete(inner: Core, number: int) -> None:
    """Run an accepted job from its start to its end."""
    await do(inner, Job.start.on(number, slot=number, low_slot=None, priority=5))
    await do(inner, Job.start_task.on(number, 1, run=1, worker="worker-1"))
    await do(inner, Job.commit_outputs.on(number, 1, run=1, outputs=(OUTPUT,), result=Result(files=(OUTPUT.name,))))
    await do(inner, Job.complete_task.on(number, 1, run=1))


async def names(inner: Core, owner: UUID = ROOM) -> list[str]:
    """Return all names that the room has had, from its events."""
    rows = await inner.database.rows(
        "SELECT convert_from(state, 'UTF8')::json->>'name' FROM events WHERE originator_id = %s ORDER BY originator_version",
        (Room.stream(owner),),
    )
    return [name for (name,) in rows]

"""The append of a job's change sends the changed columns to the views, and no more."""

from __future__ import annotations

from typing import Any

import pytest

from api.wiring.catalogue import catalogue, views
from domain.job.aggregate import Job
from domain.job.values import Result, Submission, TaskPlan
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.cause import Cause
from domain.kernel.command import Command
from domain.kernel.decision import decide
from domain.kernel.mapper import EventMapper
from projections.log.statement import WriteSet, statement
from projections.log.write_set import WriteSets
from tests.support.clock import NOON

TASKS = 100
LARGE = "x" * 1_000_000
SMALL = 4096
"""Bytes that a change of a job with one changed task may send, its event included."""


class Lived:
    """A job, and what each of its changes writes."""

    def __init__(self) -> None:
        self.job: AggregateRoot | None = None
        self._write_sets = WriteSets(EventMapper(catalogue()), views())

    def do(self, command: Command[Any]) -> WriteSet:
        decision = decide(command, self.job, at=NOON)
        self.job = decision.aggregate
        return self._write_sets.of([decision], Cause.by("x"))


@pytest.fixture
def lived() -> Lived:
    return Lived()


def accepted(count: int) -> Command[Job]:
    chain = tuple(TaskPlan(id=n, name=f"step {n}", after=(n - 1,) if n > 1 else ()) for n in range(1, count + 1))
    facts = {"client": "studio", "workflow": "any", "content_id": "a", "parameters": {"text": LARGE}, "tasks": chain}
    return Job.accept.on(1, Submission(**facts), priority=5)


def tasks_of(writes: WriteSet) -> list[int]:
    return [row.values[2] for row in writes.rows if row.view.name == "job_task_view"]


def size_of(writes: WriteSet) -> int:
    """Return the size of all parameters of the statement in bytes."""
    return sum(len(getattr(parameter, "data", parameter)) for parameter in statement([writes])[1])


def test_the_parameters_of_a_job_are_sent_once(lived: Lived) -> None:
    assert size_of(lived.do(accepted(1))) > len(LARGE)
    for command in (
        Job.start.on(1, slot=1, low_slot=None, priority=5),
        Job.start_task.on(1, 1, run=1, worker="w"),
        Job.complete_task.on(1, 1, run=1, result=Result(message="done")),
    ):
        assert size_of(lived.do(command)) < SMALL


def test_only_tasks_that_changed_are_sent(lived: Lived) -> None:
    """A job of 100 tasks that run one after the other would else write 100 rows two hundred times."""
    sent = [tasks_of(lived.do(accepted(TASKS))), tasks_of(lived.do(Job.start.on(1, slot=1, low_slot=None, priority=5)))]
    assert [len(each) for each in sent] == [TASKS, 1]
    rows = 0
    for task in range(1, TASKS + 1):
        started = lived.do(Job.start_task.on(1, task, run=1, worker="w"))
        completed = lived.do(Job.complete_task.on(1, task, run=1, result=Result(message="done")))
        assert tasks_of(started) == [task]
        assert tasks_of(completed) == [task, task + 1][: TASKS - task + 1]
        assert max(size_of(started), size_of(completed)) < SMALL
        rows += len(started.rows) + len(completed.rows)
    assert rows < 5 * TASKS


def test_a_change_of_all_tasks_is_sent_for_all(lived: Lived) -> None:
    lived.do(accepted(10))
    assert tasks_of(lived.do(Job.update.on(1, {"priority": 9}))) == list(range(1, 11))

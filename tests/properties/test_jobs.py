"""Rules that hold for a job after any sequence of commands, repeated, late or in the wrong order. ADR 0021."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.job import events
from domain.job.aggregate import Job, RetryPolicy
from domain.job.values import JobState, Output, Result, Semaphore, Submission, TaskPlan, TaskState
from domain.kernel.command import Command
from domain.kernel.errors import DomainError
from domain.kernel.event import DomainEvent
from tests.properties.test_decisions import START, Stored, holds, replayed, stored

NUMBER = 17
OUTPUTS = (Output(path="b", name="a/b", size=1, sha256="00"),)
RESULT = Result(message="done", files=("a/b",))
ENDS = (events.TaskCompleted, events.TaskFailed, events.TaskLeaseExpired, events.TaskInterrupted)
WORKERS = ("first", "second")

moments = st.none() | st.integers(-2, 4).map(lambda hours: START + timedelta(hours=hours))
semaphores = st.none() | st.sampled_from([Semaphore(url="https://semaphore.test/a"), Semaphore(url="https://semaphore.test/b")])
retries = st.builds(RetryPolicy, st.integers(0, 3), st.sampled_from([timedelta(0), timedelta(seconds=5)]))
slots = st.integers(1, 3)
offsets = st.sampled_from([-1, 0, 0, 0, 0, 1])
"""Offsets from the correct run to the run that a command names, mostly 0."""


@st.composite
def plans(draw: st.DrawFn) -> tuple[TaskPlan, ...]:
    """Draw one to four steps, each after some of the earlier ones."""
    after: list[tuple[int, ...]] = []
    for number in range(1, draw(st.integers(1, 4)) + 1):
        before = st.sets(st.integers(1, number - 1), max_size=2) if number > 1 else st.just(set())
        after.append(tuple(sorted(draw(before))))
    return tuple(TaskPlan(id=number, name=f"step {number}", after=before) for number, before in enumerate(after, start=1))


class History:
    """A model of the job, computed from its events without the aggregate."""

    def __init__(self) -> None:
        self.in_progress: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.done: set[int] = set()

    def take(self, event: DomainEvent) -> None:
        if isinstance(event, events.TaskStarted):
            assert event.task not in self.in_progress, "one run of a task at a time"
            assert event.task not in self.done, "what is done is not done again"
            assert event.run == self.last.get(event.task, 0) + 1, "runs are numbered one after the other"
            assert 1 <= event.attempt <= event.run
            self.in_progress[event.task] = self.last[event.task] = event.run
        elif isinstance(event, events.OutputsCommitted):
            assert self.in_progress[event.task] == event.run
        elif isinstance(event, ENDS):
            assert self.in_progress.pop(event.task) == event.run, "only the present run ends"
            if isinstance(event, events.TaskCompleted):
                self.done.add(event.task)
        elif isinstance(event, events.JobCompleted | events.Broken):
            self.in_progress.clear()


@dataclass(frozen=True)
class Dice:
    """The random values of one move, not all of which are used."""

    which: int
    off: int
    yes: bool
    slot: int
    run_at: datetime | None
    semaphore: Semaphore | None
    retries: RetryPolicy


class Life:
    """The life of a job, among clients, schedulers, controllers and workers that do not know of each other's actions."""

    def __init__(self, accept: Command[Job]) -> None:
        self.log: list[Stored] = []
        self.sent: list[Command[Job]] = []
        self.history = History()
        self.job = accept.decide(None, at=START)
        self._note()

    # --- moves

    def resume(self, dice: Dice) -> None:
        """Take the next regular step."""
        job = self.job
        if job.state in (JobState.SCHEDULED, JobState.PENDING):
            self.do(Job.queue.on(NUMBER, run_at=job.run_at, semaphore=job.semaphore))
        elif job.state is JobState.QUEUED:
            self.do(Job.start.on(NUMBER, slot=dice.slot, low_slot=dice.slot if dice.yes else None, priority=job.priority))
        elif ready := self.tasks_in(TaskState.READY):
            task = ready[dice.which % len(ready)]
            self.do(Job.start_task.on(NUMBER, task, run=job.tasks[task].run + 1, worker=WORKERS[dice.yes]))

    def word(self, dice: Dice) -> None:
        """A worker, or whoever looks after lost ones, says something of a run, mostly of the present one."""
        in_progress = self.tasks_in(TaskState.RUNNING, TaskState.PUBLISHING)
        task = in_progress[dice.which % len(in_progress)] if in_progress else dice.which % 4
        run = (self.job.tasks[task].run if task in self.job.tasks else 1) + dice.off
        words: list[Command[Job]] = [
            Job.commit_outputs.on(NUMBER, task, run=run, outputs=OUTPUTS, result=RESULT),
            Job.complete_task.on(NUMBER, task, run=run, result=RESULT if dice.yes else None),
            Job.complete_task.on(NUMBER, task, run=run),
            Job.fail_task.on(NUMBER, task, run=run, error="no", retries=dice.retries, final=dice.slot == 3),
            Job.expire_lease.on(NUMBER, task, run=run, retries=dice.retries),
            Job.interrupt_task.on(NUMBER, task, run=run),
        ]
        self.do(words[dice.which % len(words)])

    def stray(self, dice: Dice) -> None:
        """A scheduler, a controller or a worker that looked a while ago."""
        strays: list[Command[Job]] = [
            Job.queue.on(NUMBER, run_at=dice.run_at, semaphore=dice.semaphore),
            Job.start.on(NUMBER, slot=dice.slot, low_slot=None, priority=1 + dice.which % 10),
            Job.start_task.on(NUMBER, 1 + dice.which % 4, run=dice.slot, worker=WORKERS[dice.yes]),
        ]
        self.do(strays[dice.which % len(strays)])

    def steer(self, dice: Dice) -> None:
        wanted = [JobState.PAUSED, JobState.PAUSED, JobState.BROKEN][dice.which % 3]
        self.do(Job.update.on(NUMBER, {"queue_state": JobState.QUEUED if self.job.state is JobState.PAUSED else wanted}))

    def update(self, dice: Dice) -> None:
        changes = {"priority": 1 + dice.which % 10, "semaphore": dice.semaphore, **({"run_at": dice.run_at} if dice.run_at else {})}
        name = list(changes)[dice.which % len(changes)]
        self.do(
            Job.break_off.on(NUMBER, rerun_as=18) if dice.slot == 3 and dice.yes else Job.update.on(NUMBER, {name: changes[name]})
        )

    def again(self, dice: Dice) -> None:
        """A command comes twice, or late."""
        if self.sent:
            self.do(self.sent[-1 - dice.which % len(self.sent)])

    # --- what comes of them

    def tasks_in(self, *states: TaskState) -> list[int]:
        return [key for key, task in self.job.tasks.items() if self.job.state_of(task) in states]

    def do(self, command: Command[Job]) -> None:
        """Execute a command as the executor does: a refused command changes nothing."""
        self.sent.append(command)
        try:
            self.job = command.decide(self.job, at=START + timedelta(minutes=len(self.sent)))
        except DomainError:
            before = replayed(self.log)
            assert isinstance(before, Job)
            self.job = before
        self._note()

    def _note(self) -> None:
        for event in self.job.collect_events():
            assert isinstance(event, DomainEvent)
            self.history.take(event)
            self.log.append(stored(event))

    # --- what must hold

    def check(self) -> None:
        job = self.job
        in_progress = {key: task.run for key, task in job.tasks.items() if task.in_progress}
        assert in_progress == self.history.in_progress
        assert {key for key, task in job.tasks.items() if task.state is TaskState.COMPLETED} == self.history.done
        assert not (job.ended and in_progress), "what has ended has nothing under way"
        assert job.state is not JobState.COMPLETED or job.failed or len(self.history.done) == len(job.tasks)
        assert job.state is not JobState.STARTED or in_progress or self.tasks_in(TaskState.READY), "or its slot is held for ever"
        for task in job.tasks.values():
            assert not task.in_progress or self.history.done.issuperset(task.plan.after)
            assert 0 <= task.attempts <= task.run
        needed = job.state is JobState.STARTED or bool(in_progress)
        scopes = [claim.scope for claim in job.claims()]
        assert scopes.count("job.slot.studio") == needed, "a slot is held exactly while it is needed"
        assert scopes.count("job.low_slot.studio") <= needed


accepts = st.builds(
    lambda tasks, run_at, semaphore: Job.accept.on(
        NUMBER,
        Submission(client="studio", workflow="any", content_id="a", parameters={}, tasks=tasks),
        run_at=run_at,
        semaphore=semaphore,
    ),
    plans(),
    moments,
    semaphores,
)
dice = st.builds(Dice, st.integers(0, 60), offsets, st.booleans(), slots, moments, semaphores, retries)
moves = st.tuples(
    st.sampled_from(
        [*[Life.resume] * 8, *[Life.word] * 6, Life.stray, Life.steer, Life.update, Life.again, Life.again],
    ),
    dice,
)


def job_lives(number: int) -> st.SearchStrategy[list[Command[Any]]]:
    """The commands of a life, in their order."""
    return st.tuples(accepts, st.lists(moves, min_size=5, max_size=20)).map(lambda life: _commands(number, life[0], life[1]))


def _commands(number: int, accept: Command[Job], lived: Sequence[tuple[Callable[[Life, Dice], None], Dice]]) -> list[Command[Any]]:
    life = Life(accept)
    for move, thrown in lived:
        move(life, thrown)
    return [replace(command, key=number) for command in (accept, *life.sent)]


@settings(max_examples=150, deadline=None)
@given(accepts, st.lists(moves, min_size=30, max_size=60))
def test_the_invariants_of_a_job_hold(accept: Command[Job], lived: list[tuple[Callable[[Life, Dice], None], Dice]]) -> None:
    life = Life(accept)
    for move, thrown in lived:
        move(life, thrown)
        life.check()
    holds(life.log, life.job, len(lived))

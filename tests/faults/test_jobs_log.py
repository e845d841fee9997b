"""The counting of the job engine's fault matrix, tried on logs that are made up: each fault is found, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from domain.job import events
from domain.job.values import Output, Result, Submission, TaskPlan
from domain.kernel.event import DomainEvent
from faults.jobs_load import Fate, Submitted
from faults.jobs_log import Fact, Limits, LogCheck, Phase, Rule
from faults.jobs_verdict import judge
from tests.domain.scenario import NOW, THEN

LIMITS = Limits(max_jobs=2, priority_slots=1, priority_threshold=5)
URGENT, USUAL = 3, 7


class Log:
    """A log that is being made up. All of it is of one client, and every job has two tasks."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []

    def add(self, event: type[DomainEvent], job: int = 1, **content: Any) -> Log:
        position = len(self.facts) + 1
        made = event(originator_id=f"job:{job}", originator_version=position, timestamp=THEN, **content)
        self.facts.append(Fact(position, THEN.timestamp() + position / 1000, made))
        return self

    def accepted(self, job: int = 1, priority: int = USUAL, *, mark: str = "", **content: Any) -> Log:
        tasks = (TaskPlan(id=1, name="first"), TaskPlan(id=2, name="second", after=(1,)))
        submission = Submission(client="studio", workflow="chain", content_id=mark or f"mark-{job}", parameters={}, tasks=tasks)
        return self.add(events.Accepted, job, **{"submission": submission, "priority": priority, **content})

    def started(self, job: int = 1) -> Log:
        return self.add(events.JobStarted, job, slot=job, low_slot=None)

    def run(self, task: int, run: int = 1, job: int = 1) -> Log:
        return self.add(events.TaskStarted, job, task=task, name="x", run=run, attempt=run, worker="w")

    def committed(self, task: int, run: int = 1, job: int = 1) -> Log:
        made = Output(path="x", name=f"mark-{job}/{job}-{task}.txt", size=1, sha256="")
        return self.add(events.OutputsCommitted, job, task=task, name="x", run=run, outputs=(made,), result=Result())

    def done(self, task: int, run: int = 1, job: int = 1) -> Log:
        return self.committed(task, run, job).add(events.TaskCompleted, job, task=task, name="x", run=run)

    def lost(self, task: int, run: int, job: int = 1) -> Log:
        return self.add(events.TaskLeaseExpired, job, task=task, name="x", run=run, attempt=run, retry_at=NOW)

    def completed(self, job: int = 1, **content: Any) -> Log:
        return self.add(events.JobCompleted, job, **{"failed": False, **content})

    def whole(self, job: int = 1) -> Log:
        return self.accepted(job).started(job).run(1, job=job).done(1, job=job).run(2, job=job).done(2, job=job).completed(job)

    def reckoned(self) -> LogCheck:
        return LogCheck({"studio": LIMITS}).take_all(self.facts)

    def breaches(self) -> dict[Rule, int]:
        return dict(self.reckoned().breaches)


def test_a_log_as_it_should_be_breaks_no_rule() -> None:
    log = Log().whole()
    log.accepted(2).started(2).run(1, job=2).lost(1, 1, job=2).run(1, 2, job=2).done(1, 2, job=2)
    log.add(events.Paused, 2).add(events.JobQueued, 2, resumed=True).started(2).run(2, job=2).done(2, job=2).completed(2)
    reckoned = log.reckoned()
    assert reckoned.violations == []
    assert {job.phase for job in reckoned.jobs.values()} == {Phase.COMPLETED}
    assert (reckoned.most["studio"], reckoned.most_low["studio"]) == (1, 1)


def test_a_completed_job_may_be_broken_off_or_resumed() -> None:
    assert Log().whole().add(events.Broken).breaches() == {}
    assert Log().whole().add(events.Paused).add(events.JobQueued, resumed=True).started().completed().breaches() == {}


@pytest.mark.parametrize("event", [events.Broken, events.JobCompleted])
def test_an_end_after_the_end_is_found(event: type[DomainEvent]) -> None:
    content = {"failed": False} if event is events.JobCompleted else {}
    log = Log().whole() if event is events.JobCompleted else Log().accepted().add(events.Broken)
    assert log.add(event, **content).breaches() == {Rule.ENDS_ONCE: 1}


def test_a_completion_without_all_tasks_is_found() -> None:
    assert Log().accepted().started().run(1).done(1).completed().breaches() == {Rule.ENDS_ONCE: 1}


def test_one_started_job_too_many_is_found() -> None:
    log = Log().accepted(1, URGENT).accepted(2, URGENT).accepted(3, URGENT).started(1).started(2).started(3)
    assert log.breaches() == {Rule.SLOTS: 1}


def test_a_paused_job_holds_its_slot_until_its_step_has_ended() -> None:
    log = Log().accepted(1, URGENT).accepted(2, URGENT).accepted(3, URGENT).started(1).started(2).run(1).add(events.Paused)
    assert log.started(3).breaches() == {Rule.SLOTS: 1}
    log = Log().accepted(1, URGENT).accepted(2, URGENT).accepted(3, URGENT).started(1).started(2).run(1).add(events.Paused)
    assert log.done(1).started(3).breaches() == {}


def test_a_usual_job_in_a_reserved_slot_is_found() -> None:
    assert Log().accepted(1).accepted(2).started(1).started(2).breaches() == {Rule.RESERVED: 1}


def test_the_priority_at_the_start_counts() -> None:
    made_usual = Log().accepted(1).accepted(2, URGENT).add(events.PriorityChanged, 2, previous=URGENT, priority=USUAL)
    assert made_usual.started(1).started(2).breaches() == {Rule.RESERVED: 1}
    later = Log().accepted(1).accepted(2, URGENT).started(1).started(2)
    assert later.add(events.PriorityChanged, 2, previous=URGENT, priority=USUAL).breaches() == {}


def test_a_second_start_is_found() -> None:
    assert Log().accepted().started().started().breaches() == {Rule.STARTS: 1}


def test_a_job_that_is_queued_before_its_time_is_found() -> None:
    log = Log().accepted(run_at=THEN + timedelta(hours=1))
    assert log.add(events.JobQueued).breaches() == {Rule.STARTS: 1}
    assert Log().accepted(run_at=THEN + timedelta(milliseconds=1)).add(events.JobQueued).breaches() == {}


def test_a_task_that_does_not_wait_for_the_one_before_is_found() -> None:
    assert Log().accepted().started().run(2).breaches() == {Rule.STARTS: 1}


@pytest.mark.parametrize("run", [1, 2])
def test_a_run_beside_another_is_found(run: int) -> None:
    assert Log().accepted().started().run(1).run(1, run).breaches() == {Rule.ONE_RUN: 1}


def test_a_run_with_an_old_number_is_found() -> None:
    assert Log().accepted().started().run(1).lost(1, 1).run(1, 1).breaches() == {Rule.ONE_RUN: 1}


def test_what_an_overtaken_run_says_is_found() -> None:
    assert Log().accepted().started().run(1).lost(1, 1).run(1, 2).committed(1, 1).breaches() == {Rule.OVERTAKEN: 1}
    assert Log().accepted().started().run(1).add(events.Broken).committed(1).breaches() == {Rule.OVERTAKEN: 1}
    assert Log().accepted().started().run(1).lost(1, 1).lost(1, 1).breaches() == {Rule.OVERTAKEN: 1}


def test_outputs_that_are_committed_twice_are_found() -> None:
    assert Log().accepted().started().run(1).committed(1).committed(1).breaches() == {Rule.PUBLISHED_ONCE: 1}


def test_a_completion_of_what_was_not_committed_is_found() -> None:
    log = Log().accepted().started().run(1).add(events.TaskCompleted, task=1, name="x", run=1)
    assert log.breaches() == {Rule.PUBLISHED_ONCE: 1}


def test_two_lost_leases_in_a_row_are_a_reason_to_give_up_and_two_others_are_not() -> None:
    twice = Log().accepted().started().run(1).lost(1, 1).run(1, 2).lost(1, 2)
    assert twice.completed(failed=True, reason="lost").breaches() == {}
    between = Log().accepted().started().run(1).lost(1, 1).run(1, 2).add(events.TaskInterrupted, task=1, name="x", run=2)
    assert between.run(1, 3).lost(1, 3).completed(failed=True, reason="lost").breaches() == {Rule.GIVEN_UP: 1}


# --- beside what the clients were told


def submitted(job: int = 1, fate: Fate = Fate.PLAIN, *, rerun: int | None = None) -> Submitted:
    return Submitted(f"mark-{job}", "studio", fate, number=job, rerun=rerun)


def published(root: Path, job: int, run: int = 1) -> Path:
    for task in (1, 2):
        path = root / f"mark-{job}" / f"{job}-{task}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{job} {task} {run}\n")
    return root


def test_jobs_that_reached_the_ordered_state_have_no_fault(tmp_path: Path) -> None:
    log = Log().whole().add(events.Broken, 1, rerun_as=2).accepted(2).add(events.Broken, 2)
    verdict = judge([submitted(fate=Fate.BROKEN), submitted(2, Fate.BROKEN)], log.reckoned(), media_root=published(tmp_path, 1))
    assert (verdict.faults, verdict.messages) == (0, [])


def test_an_answered_job_that_the_log_does_not_know_is_lost(tmp_path: Path) -> None:
    verdict = judge([submitted(), submitted(2)], Log().whole().reckoned(), media_root=published(tmp_path, 1))
    assert (verdict.lost, verdict.faults) == (1, 1)


def test_a_job_that_is_accepted_twice_is_found(tmp_path: Path) -> None:
    log = Log().accepted(1).add(events.Broken, 1).accepted(2, mark="mark-1").add(events.Broken, 2)
    verdict = judge([submitted(fate=Fate.BROKEN)], log.reckoned(), media_root=tmp_path)
    assert (verdict.twice, verdict.faults) == (1, 1)


def test_a_rerun_is_accepted_once_and_completes(tmp_path: Path) -> None:
    log = Log().accepted(1).add(events.Broken, 1, rerun_as=2).accepted(2, mark="mark-1", rerun_of=1)
    log.accepted(3, mark="mark-1", rerun_of=1).add(events.Broken, 3)
    verdict = judge([submitted(fate=Fate.RERUN, rerun=2)], log.reckoned(), media_root=tmp_path)
    assert (verdict.unended, verdict.twice, verdict.otherwise, verdict.faults) == (1, 1, 1, 3)


def test_a_job_that_was_never_ordered_is_unknown(tmp_path: Path) -> None:
    assert judge([], Log().whole().reckoned(), media_root=published(tmp_path, 1)).unknown == 1


def test_a_job_that_does_not_end_or_ends_otherwise_is_found(tmp_path: Path) -> None:
    log = Log().accepted().started().accepted(2).add(events.Broken, 2)
    verdict = judge([submitted(), submitted(2)], log.reckoned(), media_root=tmp_path)
    assert (verdict.unended, verdict.otherwise, verdict.faults) == (1, 1, 2)


@pytest.mark.parametrize("run", [0, 2])
def test_a_file_of_another_run_is_found(tmp_path: Path, run: int) -> None:
    verdict = judge([submitted()], Log().whole().reckoned(), media_root=published(tmp_path, 1, run))
    assert (verdict.files, verdict.faults) == (2, 2)


def test_a_file_that_is_not_there_or_should_not_be_is_found(tmp_path: Path) -> None:
    assert judge([submitted()], Log().whole().reckoned(), media_root=tmp_path).files == 2
    unpublished = Log().accepted().started().run(1).add(events.Broken).reckoned()
    assert judge([submitted(fate=Fate.BROKEN)], unpublished, media_root=published(tmp_path, 1)).files == 2

"""A task of a job: one step of the workflow, with its current run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from domain.job.values import Output, Result, TaskPlan, TaskState


@dataclass(slots=True)
class Task:
    """A task with its current run. `run` is the number of the current run; reports of other runs are refused. `attempts` counts
    the runs that were not interrupted; `lost` counts the latest consecutive runs whose worker was lost."""

    plan: TaskPlan
    state: TaskState = TaskState.WAITING
    run: int = 0
    attempts: int = 0
    lost: int = 0
    worker: str = ""
    due_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str = ""
    outputs: tuple[Output, ...] = field(default=())
    result: Result | None = None

    @property
    def in_progress(self) -> bool:
        return self.state in (TaskState.RUNNING, TaskState.PUBLISHING)

    def wait(self, due_at: datetime | None = None) -> None:
        self.state, self.due_at = TaskState.WAITING, due_at

    def reset(self) -> None:
        """Reset a failed or cancelled task that is tried again."""
        self.wait()
        self.attempts = self.lost = 0
        self.error = ""

    def to_snapshot(self) -> dict[str, Any]:
        return {
            "plan": self.plan.model_dump(mode="json"),
            "state": int(self.state),
            "counts": (self.run, self.attempts, self.lost),
            "worker": self.worker,
            "times": [moment and moment.isoformat() for moment in (self.due_at, self.started_at, self.ended_at)],
            "error": self.error,
            "outputs": [output.model_dump(mode="json") for output in self.outputs],
            "result": self.result and self.result.model_dump(mode="json"),
        }

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Task:
        run, attempts, lost = snapshot["counts"]
        due, started, ended = (moment and datetime.fromisoformat(moment) for moment in snapshot["times"])
        return cls(
            TaskPlan.model_validate(snapshot["plan"]),
            TaskState(snapshot["state"]),
            run,
            attempts,
            lost,
            snapshot["worker"],
            due,
            started,
            ended,
            snapshot["error"],
            tuple(map(Output.model_validate, snapshot["outputs"])),
            snapshot["result"] and Result.model_validate(snapshot["result"]),
        )

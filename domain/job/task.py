"""A task of a job as it now stands: one step of the workflow, and its runs so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from domain.job.values import Output, Result, TaskPlan, TaskState


@dataclass(slots=True)
class Task:
    """`run` numbers the runs ever begun: the present one's number keeps the others from writing. `attempts` are those of them that
    count; `lost` how many of the last were lost with their worker."""

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
    def under_way(self) -> bool:
        return self.state in (TaskState.RUNNING, TaskState.PUBLISHING)

    def wait(self, due_at: datetime | None = None) -> None:
        self.state, self.due_at = TaskState.WAITING, due_at

    def begin_again(self) -> None:
        """Somebody wants what was given up or cancelled to be tried anew."""
        self.wait()
        self.attempts = self.lost = 0
        self.error = ""

    def remembered(self) -> dict[str, Any]:
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
    def restored(cls, kept: dict[str, Any]) -> Task:
        run, attempts, lost = kept["counts"]
        due, started, ended = (moment and datetime.fromisoformat(moment) for moment in kept["times"])
        return cls(
            TaskPlan.model_validate(kept["plan"]),
            TaskState(kept["state"]),
            run,
            attempts,
            lost,
            kept["worker"],
            due,
            started,
            ended,
            kept["error"],
            tuple(map(Output.model_validate, kept["outputs"])),
            kept["result"] and Result.model_validate(kept["result"]),
        )

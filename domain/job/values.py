"""What a job and its tasks are made of. Document 3, "Job (job engine)"; ADR 0021."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from domain.kernel.errors import Conflict
from domain.kernel.sealed import SecretRef

HIGHEST_PRIORITY: Final = 1
LOWEST_PRIORITY: Final = 10
DEFAULT_PRIORITY: Final = 5


class JobState(IntEnum):
    """The queue states of document 3, with the numbers that its `state` filter takes."""

    QUEUED = 0
    STARTED = 1
    COMPLETED = 2
    PENDING = 3
    BROKEN = 4
    SCHEDULED = 5
    PAUSED = 6


TERMINAL: Final = frozenset({JobState.COMPLETED, JobState.BROKEN})


class Severity(IntEnum):
    """How grave a line of a job's log is. Document 3: 1 is INFO; decisions.md: 0 DEBUG to 4 FATAL."""

    DEBUG = 0
    INFO = 1
    WARN = 2
    ERROR = 3
    FATAL = 4


class TaskState(IntEnum):
    """`PUBLISHING`: the step has ended and what it made is decided; the files are on their way to their places."""

    WAITING = 0
    READY = 1
    RUNNING = 2
    PUBLISHING = 3
    COMPLETED = 4
    FAILED = 5
    CANCELLED = 6


UNDER_WAY: Final = frozenset({TaskState.RUNNING, TaskState.PUBLISHING})


class Value(BaseModel):
    """Part of an event."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class TaskPlan(Value):
    """A step of the workflow as it was when the job was accepted. `after` are the ids of the tasks that come before it."""

    id: int
    name: str
    queue: str = "work"
    after: tuple[int, ...] = ()


class Output(Value):
    """A file that a step made: `path` in the workspace of its run, `name` its place below the media root. `size` in bytes."""

    path: str
    name: str
    size: int
    sha256: str


class Result(Value):
    """What a step says of what it did. `files` are the names of what it published; `metadata` is any JSON object."""

    message: str = ""
    files: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}


class Submission(Value):
    """What a client asked for. Everything in it may be shown: what is secret is masked, and lies sealed in the vault.

    `callbacks` are the webhooks that are told of the job."""

    client: str
    workflow: str
    content_id: str
    parameters: dict[str, Any]
    tasks: Annotated[tuple[TaskPlan, ...], Field(min_length=1)]
    sealed_parameters: SecretRef | None = None
    callbacks: tuple[UUID, ...] = ()


class Gate(Value):
    """An address that must answer 2xx or 3xx before a job may be queued. `url` is shown; `sealed_url` holds the whole, if more."""

    url: str
    sealed_url: SecretRef | None = None

    @property
    def mark(self) -> tuple[str, str]:
        """The same for the same address: a secret that is sealed again lies elsewhere."""
        return self.url, "" if self.sealed_url is None else self.sealed_url.fingerprint


class Fenced(Conflict):
    """Somebody speaks of a run of a task that is not its present one: it was lost, given to another or has ended."""

    def __init__(self, job: str, task: int, run: int) -> None:
        super().__init__(f"run {run} of task {task} of job {job} is not the present one")


def check_graph(tasks: Iterable[TaskPlan]) -> None:
    """Every task comes after tasks that stand before it, so there is no circle and one can begin."""
    known: set[int] = set()
    for task in tasks:
        assert known.issuperset(task.after), f"task {task.name} comes after one that is not before it"
        assert task.id not in known, f"task {task.id} is there twice"
        known.add(task.id)

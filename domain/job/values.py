"""Values of a job and its tasks: docs/reference/api/job-engine.md#job; ADR 0021."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from domain.kernel.encryption import SecretRef
from domain.kernel.errors import Conflict
from domain.kernel.named_callback import NamedCallback

HIGHEST_PRIORITY: Final = 1
LOWEST_PRIORITY: Final = 10
DEFAULT_PRIORITY: Final = 5


class JobState(IntEnum):
    """The states of a job, with the numbers that the filter `state` takes."""

    QUEUED = 0
    STARTED = 1
    COMPLETED = 2
    PENDING = 3
    BROKEN = 4
    SCHEDULED = 5
    PAUSED = 6


TERMINAL: Final = frozenset({JobState.COMPLETED, JobState.BROKEN})


class Severity(IntEnum):
    """Severity of a record in a job's log."""

    DEBUG = 0
    INFO = 1
    WARN = 2
    ERROR = 3
    FATAL = 4


class TaskState(IntEnum):
    """The states of a task. `PUBLISHING`: the step has ended, and its files are being moved to their places."""

    WAITING = 0
    READY = 1
    RUNNING = 2
    PUBLISHING = 3
    COMPLETED = 4
    FAILED = 5
    CANCELLED = 6


UNDER_WAY: Final = frozenset({TaskState.RUNNING, TaskState.PUBLISHING})


class Value(BaseModel):
    """Base of the values that are part of an event."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class TaskPlan(Value):
    """A step of the workflow as of the job's acceptance. `after` holds the ids of the tasks that must be completed before it."""

    id: int
    name: str
    queue: str = "work"
    after: tuple[int, ...] = ()


class Output(Value):
    """A file of a step: `path` in the workspace of its run, `name` its path below the media root. `size` is in bytes."""

    path: str
    name: str
    size: int
    sha256: str


class Result(Value):
    """The result of a step. `files` are the names of the files that it published; `metadata` is any JSON object."""

    message: str = ""
    files: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}


class Submission(Value):
    """The request of a client. All of it may be shown: secrets are masked here and encrypted in the vault. `owner` is the stream
    of the aggregate that the job works for; the end of the job becomes a command to it."""

    client: str
    workflow: str
    content_id: str
    parameters: dict[str, Any]
    tasks: Annotated[tuple[TaskPlan, ...], Field(min_length=1)]
    sealed_parameters: SecretRef | None = None
    callbacks: tuple[NamedCallback, ...] = ()
    owner: str | None = None


class Semaphore(Value):
    """The precondition of a job: an address that must answer 2xx or 3xx before the job is queued. The HTTP API spells it
    `sempahore_url`. `url` is shown; `sealed_url` is the secret of the whole URL, if that has more."""

    url: str
    sealed_url: SecretRef | None = None

    @property
    def mark(self) -> tuple[str, str]:
        """A value that is equal for equal addresses: a secret that is encrypted again has another reference and the same
        fingerprint."""
        return self.url, "" if self.sealed_url is None else self.sealed_url.fingerprint


class Fenced(Conflict):
    """Raised for a command about a run of a task that is not the current one: it was lost, given to another worker, or has
    ended."""

    def __init__(self, job: str, task: int, run: int) -> None:
        super().__init__(f"run {run} of task {task} of job {job} is not the current one")


def check_graph(tasks: Iterable[TaskPlan]) -> None:
    """Check that each task depends on earlier tasks only, so that there is no cycle and at least one task can start."""
    ids: set[int] = set()
    for task in tasks:
        assert ids.issuperset(task.after), f"task {task.name} depends on a task that does not come before it"
        assert task.id not in ids, f"task {task.id} exists twice"
        ids.add(task.id)

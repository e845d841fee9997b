"""Jobs of the engine as commands submit and follow them: on a terminal a bar for each running task, on a pipe a line for each
change. Jobs and tasks are documents of the API."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

from api.cli.remote.rest_api import ApiError, RestApi
from api.cli.terminal_text import printable

if TYPE_CHECKING:
    from rich.progress import TaskID


OWNER: Final = "admin"
"""The client that owns the jobs and publications that are made at the machine of the product, unless another is given."""
MAX_SHOWN: Final = 100
"""The maximum number of running jobs on the screen."""
TERMINAL: Final = ("completed", "broken", "failed")
_UNDER_WAY: Final = ("running", "publishing")
_NOT_BEGUN: Final = ("waiting", "ready")

Job = Mapping[str, Any]
Task = Mapping[str, Any]


def submit(api: RestApi, job: Mapping[str, Any], parameters: Mapping[str, Any], *, client: str | None) -> int:
    """Submit a job and return its number. Without `client`, it belongs to `OWNER` at the machine of the product, and elsewhere to
    the client of the API key."""
    body = {"job": job, "parameters": parameters, "client": owner(api, client)}
    return int(api.call("POST", "/engine/job", body=body, named=True).document["id"])


def owner(api: RestApi, client: str | None) -> str | None:
    return OWNER if client is None and api.local else client


class Screen(Protocol):
    """Shows the state of jobs and tasks."""

    def show(self, jobs: Sequence[Job], tasks: Sequence[Task]) -> None: ...


class Lines:
    """Prints a line for each change."""

    def __init__(self) -> None:
        self._before: dict[tuple[int, int], str] = {}

    def show(self, jobs: Sequence[Job], tasks: Sequence[Task]) -> None:
        for line in self.changed_lines(jobs, [(task, progress_text(task)) for task in tasks]):
            print(line, flush=True)

    def changed_lines(self, jobs: Sequence[Job], tasks: Sequence[tuple[Task, str]]) -> list[str]:
        """Return the lines that differ from the last call. `tasks` pairs each task with the text of its progress."""
        now: dict[tuple[int, int], str] = {}
        for job in jobs:
            key = job["id"]
            own = {
                (key, task["task_id"]): _task_line(task, progress)
                for task, progress in tasks
                if task["job_id"] == key and _is_shown(task)
            }
            job_line = {(key, 0): _job_line(job)}
            now |= {**own, **job_line} if job_state(job) in TERMINAL else {**job_line, **own}
        new = [line for key, line in now.items() if self._before.get(key) != line]
        self._before = now
        return new


class Bars:
    """The screen on a terminal: lines for jobs, without the progress of tasks, and bars below them for the running tasks."""

    def __init__(self, lines: Lines) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn  # most commands show no bars

        bar = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
        message = TextColumn("{task.fields[message]}", markup=False)
        self._progress = Progress(*bar, message, auto_refresh=False, transient=True)
        self._lines = lines
        self._bars: dict[tuple[int, int], TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def show(self, jobs: Sequence[Job], tasks: Sequence[Task]) -> None:
        for line in self._lines.changed_lines(jobs, [(task, "") for task in tasks]):
            self._progress.console.print(line, markup=False, highlight=False, emoji=False)
        running = {(task["job_id"], task["task_id"]): task for task in tasks if is_under_way(task)}
        for key in self._bars.keys() - running.keys():
            self._progress.remove_task(self._bars.pop(key))
        for key, task in running.items():
            if key not in self._bars:
                self._bars[key] = self._progress.add_task(f"{task['job_id']} {printable(task['name'])}", total=1.0, message="")
            self._progress.update(self._bars[key], completed=task["fraction"], message=printable(task["message"]))
        self._progress.refresh()


class JobSelection:
    """The jobs to watch: given ones until they have ended, or all running jobs until the command is interrupted."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.until_ended = bool(ids)
        self.followed = set(ids)

    def ids(self, running: Sequence[Job]) -> Sequence[int]:
        """Return the ids of the jobs to read. A job that was running the last time is read once more, to show how it ended."""
        if not self.until_ended:
            self.followed |= {job["id"] for job in running}
        return sorted(self.followed)

    def continues(self, jobs: Sequence[Job]) -> bool:
        self.followed = {job["id"] for job in jobs if self._is_followed(job)}
        return bool(self.followed) or not self.until_ended

    def _is_followed(self, job: Job) -> bool:
        return job_state(job) not in TERMINAL if self.until_ended else job_state(job) == "started"


def job_state(job: Job) -> str:
    """Return the state of a job for people, where `failed` is a state of its own."""
    state = str(job.get("queue_state"))
    return "failed" if job.get("failed") and state == "completed" else state


def progress_text(task: Task) -> str:
    """Return the progress of a running task; an empty text for any other task."""
    if not is_under_way(task):
        return ""
    return "  ".join([f"{task['fraction']:.0%}", *([printable(task["message"])] if task["message"] else [])])


def is_under_way(task: Task) -> bool:
    return task["state"] in _UNDER_WAY


def _is_shown(task: Task) -> bool:
    return task["state"] not in _NOT_BEGUN or task["attempts"] > 0


def _job_line(job: Job) -> str:
    return f"{job['id']}  {printable(job['workflow'])} of {printable(job['client'])} is {job_state(job)}"


def _task_line(task: Task, progress: str) -> str:
    state = "waits for the next attempt" if task["state"] in _NOT_BEGUN else f"is {task['state']}"
    return f"{task['job_id']}  {printable(task['name'])} {state}, attempt {task['attempts']}{progress and '  '}{progress}"


@contextmanager
def screen() -> Iterator[Screen]:
    if not sys.stdout.isatty():
        yield Lines()
        return
    with Bars(Lines()) as bars:
        yield bars


INTERVAL: Final = 0.5
"""The seconds between two reads."""

T = TypeVar("T")


_AWAY = (0, 429, 502, 503, 504)
"""Statuses that may be different a moment later; 0 means that there was no answer."""


def watch(api: RestApi, ids: Sequence[int], *, client: str | None) -> None:
    """Show the progress of these jobs until they have ended; without ids, that of all running jobs until the command is
    interrupted."""
    selection = JobSelection(ids)
    with screen() as shown:
        while True:
            jobs, tasks = available(lambda: _read(api, selection, client=client))
            shown.show(jobs, tasks)
            if not selection.continues(jobs):
                return
            time.sleep(INTERVAL)


def available(ask: Callable[[], T]) -> T:
    """Return the result of `ask`, which is repeated while the API is unavailable."""
    printed = False
    while True:
        try:
            return ask()
        except ApiError as fault:
            if fault.status not in _AWAY:
                raise
            if not printed:
                print(f"medialedger: {fault}; waiting for it", file=sys.stderr)
            printed = True
            time.sleep(INTERVAL)


def _read(api: RestApi, selection: JobSelection, *, client: str | None) -> tuple[Sequence[Job], Sequence[Task]]:
    running: Sequence[Job] = ()
    if not selection.until_ended:
        running = api.documents("/engine/jobs", state="started", items=MAX_SHOWN, client=client, asc=1)
    ids = selection.ids(running)
    if not ids:
        return (), ()
    listed = ",".join(map(str, ids))
    jobs = api.documents("/engine/jobs", job_ids=listed, items=len(ids), asc=1)
    return jobs, api.documents("/engine/tasks", job_ids=listed)

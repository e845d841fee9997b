"""The progress of jobs, live: on a terminal a bar for each running task, on a pipe a line for each change."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Final, Protocol, Self

from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn

from api.cli.polling import INTERVAL, retry_unavailable
from api.cli.printable import printable
from domain.job.values import TERMINAL, UNDER_WAY, JobState, TaskState
from projections.job.board import BoardQueries, TaskProgress
from projections.job.queries import JobFilter, JobQueries, JobRow

_MAX_SHOWN: Final = 100
"""The maximum of running jobs on the screen."""

Rows = Sequence[JobRow]
Tasks = Sequence[TaskProgress]
_NOT_BEGUN: Final = (TaskState.WAITING, TaskState.READY)


class Screen(Protocol):
    """Shows the state of jobs and tasks."""

    def show(self, rows: Rows, tasks: Tasks) -> None: ...


class Lines:
    """Prints a line for each change."""

    def __init__(self) -> None:
        self._before: dict[tuple[int, int], str] = {}

    def show(self, rows: Rows, tasks: Tasks) -> None:
        for line in self.changed_lines(rows, [(one, progress_text(one)) for one in tasks]):
            print(line, flush=True)

    def changed_lines(self, rows: Rows, tasks: Sequence[tuple[TaskProgress, str]]) -> list[str]:
        """The lines that differ from the last call. `tasks`: each with the text of its progress."""
        now: dict[tuple[int, int], str] = {}
        for row in rows:
            own = {(row.id, one.task): _task_line(one, progress) for one, progress in tasks if one.job == row.id and _is_shown(one)}
            job = {(row.id, 0): _job_line(row)}
            now |= {**own, **job} if row.state in TERMINAL else {**job, **own}
        new = [line for key, line in now.items() if self._before.get(key) != line]
        self._before = now
        return new


class Bars:
    """The same lines without the progress of tasks, which the bars below them show."""

    def __init__(self) -> None:
        bar = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
        message = TextColumn("{task.fields[message]}", markup=False)
        self._progress = Progress(*bar, message, auto_refresh=False, transient=True)
        self._lines = Lines()
        self._bars: dict[tuple[int, int], TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def show(self, rows: Rows, tasks: Tasks) -> None:
        for line in self._lines.changed_lines(rows, [(one, "") for one in tasks]):
            self._progress.console.print(line, markup=False, highlight=False, emoji=False)
        running = {(one.job, one.task): one for one in tasks if one.state in UNDER_WAY}
        for key in self._bars.keys() - running.keys():
            self._progress.remove_task(self._bars.pop(key))
        for key, one in running.items():
            if key not in self._bars:
                self._bars[key] = self._progress.add_task(f"{one.job} {printable(one.name)}", total=1.0, message="")
            self._progress.update(self._bars[key], completed=one.fraction, message=printable(one.message))
        self._progress.refresh()


class Watch:
    """Watches some jobs until they have ended, or all running jobs until it is interrupted."""

    def __init__(self, jobs: JobQueries, boards: BoardQueries, *, ids: Sequence[int], client: str | None) -> None:
        self._jobs = jobs
        self._boards = boards
        self._followed = set(ids)
        self._until_ended = bool(ids)
        self._running = JobFilter(limit=_MAX_SHOWN, state=JobState.STARTED, client=client, descending=False)

    async def run(self, screen: Screen) -> None:
        while True:
            rows, tasks = await retry_unavailable(self._read)
            screen.show(rows, tasks)
            self._followed = {row.id for row in rows if self._is_followed(row)}
            if self._until_ended and not self._followed:
                return
            await asyncio.sleep(INTERVAL)

    async def _read(self) -> tuple[Rows, Tasks]:
        """A job that was running the last time is read once more, to show how it ended."""
        if not self._until_ended:
            self._followed |= {row.id for row in await self._jobs.search(self._running)}
        if not self._followed:
            return [], []
        ids = sorted(self._followed)
        rows = await self._jobs.search(JobFilter(limit=len(ids), job_ids=ids, descending=False))
        return rows, await self._boards.tasks(ids)

    def _is_followed(self, row: JobRow) -> bool:
        return row.state not in TERMINAL if self._until_ended else row.state is JobState.STARTED


async def watch(jobs: JobQueries, boards: BoardQueries, *, ids: Sequence[int], client: str | None) -> None:
    watching = Watch(jobs, boards, ids=ids, client=client)
    if sys.stdout.isatty():
        with Bars() as bars:
            await watching.run(bars)
    else:
        await watching.run(Lines())


def progress_text(one: TaskProgress) -> str:
    """The progress of a running task; empty for any other task."""
    return "  ".join(_progress_parts(one)) if one.state in UNDER_WAY else ""


def _progress_parts(one: TaskProgress) -> Iterator[str]:
    yield f"{one.fraction:.0%}"
    if one.message:
        yield printable(one.message)


def state_of(row: JobRow) -> str:
    return "failed" if row.failed and row.state is JobState.COMPLETED else row.state.name.lower()


def _is_shown(one: TaskProgress) -> bool:
    return one.state not in _NOT_BEGUN or one.attempts > 0


def _job_line(row: JobRow) -> str:
    return f"{row.id}  {printable(row.workflow)} of {printable(row.client)} is {state_of(row)}"


def _task_line(one: TaskProgress, progress: str) -> str:
    state = "waits for the next attempt" if one.state in _NOT_BEGUN else f"is {one.state.name.lower()}"
    return f"{one.job}  {printable(one.name)} {state}, attempt {one.attempts}{progress and '  '}{progress}"

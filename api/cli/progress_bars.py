"""A progress bar for each running task, on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn

from api.cli.job_progress import Job, Lines, Task, is_under_way
from api.cli.printable import printable


class Bars:
    """The screen on a terminal: lines for jobs, without the progress of tasks, and bars below them for the running tasks."""

    def __init__(self, lines: Lines) -> None:
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

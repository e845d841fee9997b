"""Lines and progress of steps: lines are added, progress is the latest of the latest run."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from api.wiring.core import Core
from domain.job.values import Severity
from domain.kernel.mapper import EventMapper
from projections.job.history import BEGINNING, JobHistory, LogLine
from projections.job.log_lines import LONGEST_LINE, JobLogLine, Progress, write
from projections.job.queue import QueuedRun
from tests.support.clock import NOON


def line(message: str, *, job: int = 1, task: int = 1, hours: float = 0) -> JobLogLine:
    return JobLogLine(job, task, Severity.INFO, message, NOON + timedelta(hours=hours))


async def test_lines_are_kept_in_their_order(inner: Core) -> None:
    await write(inner.database, lines=[line("a"), line("b", task=0)], progress=[])
    await write(inner.database, lines=[line("c", job=2)], progress=[])
    stored_rows = await inner.database.rows("SELECT job, task, severity, message, created_at FROM job_log_lines ORDER BY job, id")
    assert stored_rows == [(1, 1, 1, "a", NOON), (1, 0, 1, "b", NOON), (2, 1, 1, "c", NOON)]


@pytest.mark.parametrize("other", [1, 2])
async def test_a_line_that_is_committed_later_is_not_lost_to_a_reader(inner: Core, other: int) -> None:
    """The first writer has drawn its number and waits for a row of the progress; a second one is not held up before it."""
    history, progress = JobHistory(inner.database, EventMapper(inner.catalogue)), Progress(QueuedRun(1, 1, 1), 0.5, "")
    await write(inner.database, lines=[], progress=[progress])
    seen: list[str] = []
    cursor = BEGINNING

    async def follow() -> None:
        nonlocal cursor
        page = await history.since(1, cursor)
        seen.extend(entry.message for entry in page.entries if isinstance(entry, LogLine))
        cursor = page.end(cursor)

    async with asyncio.TaskGroup() as writers, inner.database.connection() as holder, holder.transaction():
        await holder.execute("SELECT FROM job_progress FOR UPDATE")
        writers.create_task(write(inner.database, lines=[line("first")], progress=[progress]))
        await until(inner, waiting=1)
        late = writers.create_task(write(inner.database, lines=[line("late", job=other)], progress=[]))
        await until(inner, waiting=2, unless=late)
        await follow()
        assert late.done() is (other == 2), "only lines of the same job wait"
    await follow()
    assert sorted(seen) == (["first", "late"] if other == 1 else ["first"])


async def until(inner: Core, *, waiting: int, unless: asyncio.Task[None] | None = None) -> None:
    """Until so many sessions wait for a lock, or the task is done."""
    question = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    while await inner.database.row(question) != (waiting,):
        if unless is not None and unless.done():
            return
        await asyncio.sleep(0)


async def test_a_line_may_hold_anything(inner: Core) -> None:
    await write(inner.database, lines=[line("\0 \u2028 😀"), line("x" * (LONGEST_LINE + 1))], progress=[])
    [(odd,), (long,)] = await inner.database.rows("SELECT message FROM job_log_lines ORDER BY id")
    assert odd == "\ufffd \u2028 😀"
    assert long == "x" * LONGEST_LINE


async def test_progress_is_that_of_the_latest_run(inner: Core) -> None:
    first, second, other = QueuedRun(1, 1, 1), QueuedRun(1, 1, 2), QueuedRun(1, 2, 1)
    await write(
        inner.database, lines=[], progress=[Progress(first, 0.25, "a"), Progress(other, 0.5, "b"), Progress(first, 0.75, "c")]
    )
    asked = "SELECT task, run, fraction, message FROM job_progress ORDER BY task"
    assert await inner.database.rows(asked) == [(1, 1, 0.75, "c"), (2, 1, 0.5, "b")]
    await write(inner.database, lines=[], progress=[Progress(second, 0.0, "again")])
    await write(inner.database, lines=[], progress=[Progress(first, 1.0, "from a frozen one")])
    assert await inner.database.rows(asked) == [(1, 2, 0.0, "again"), (2, 1, 0.5, "b")]


async def test_progress_is_never_beyond_its_ends(inner: Core) -> None:
    await write(inner.database, lines=[], progress=[Progress(QueuedRun(1, 1, 1), 7.5, ""), Progress(QueuedRun(1, 2, 1), -1.0, "")])
    assert await inner.database.rows("SELECT fraction FROM job_progress ORDER BY task") == [(1.0,), (0.0,)]

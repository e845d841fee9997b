"""Follows jobs on the database, and waits while the database is unavailable."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from api.cli.remote.progress import INTERVAL, Job, JobSelection, Task, job_document, retry_unavailable, screen, task_document
from projections.job.board import BoardQueries
from projections.job.queries import JobFilter, JobQueries


async def watch(jobs: JobQueries, boards: BoardQueries, *, ids: Sequence[int]) -> None:
    """Show the progress of these jobs until they have ended."""

    async def read(wanted: Sequence[int]) -> tuple[list[Job], list[Task]]:
        rows = (await jobs.search(JobFilter(limit=len(wanted), job_ids=wanted, descending=False))).rows
        return list(map(job_document, rows)), list(map(task_document, await boards.tasks(wanted)))

    selection = JobSelection(ids)
    with screen() as shown:
        while True:
            documents, tasks = await retry_unavailable(partial(read, selection.ids(())))
            shown.show(documents, tasks)
            if not selection.continues(documents):
                return
            await asyncio.sleep(INTERVAL)

"""Files and rows of jobs are deleted when the jobs have ended a while ago, and not before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from api.wiring.core import Core
from domain.job.commands import BreakJob
from domain.kernel.ids import new_id
from projections.job.queue import Run, TaskQueue
from tests.conftest import HandClock
from tests.projections.feeding import do
from tests.projections.job.jobs_made import accept
from tests.projections.log.helpers import rows
from workers.jobs.housekeeping import Housekeeping
from workers.jobs.media_paths import MediaPaths
from workers.jobs.workspaces import Workspaces


async def test_folders_of_ended_jobs_are_deleted(inner: Core, clock: HandClock, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    clock.now = now - timedelta(minutes=11)
    for number in (1, 2, 3):
        await accept(inner, number)
        MediaPaths(tmp_path, number).workspace(1, 1).mkdir(parents=True)
    await do(inner, BreakJob(1))
    clock.now = now
    await do(inner, BreakJob(2))
    queue, workspaces = TaskQueue(inner.database, member=new_id()), Workspaces(tmp_path)
    await Housekeeping(queue, workspaces=workspaces).tidy()
    assert sorted(await workspaces.jobs()) == [2, 3]


async def test_leases_that_expired_long_ago_are_deleted(inner: Core, database_url: str) -> None:
    for job, past in ((1, "61 minutes"), (2, "59 minutes")):
        values = (*Run(job, 1, 1), new_id(), past)
        await inner.database.execute("INSERT INTO job_leases VALUES (%s, %s, %s, %s, clock_timestamp() - %s::interval)", values)
    await TaskQueue(inner.database, member=new_id()).tidy()
    assert rows(database_url, "SELECT job FROM job_leases") == [(2,)]

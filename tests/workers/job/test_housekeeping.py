"""Files and rows of jobs are deleted some time after the jobs have ended, and not before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from api.wiring.core import Core
from domain.job.aggregate import Job
from projections.job.queue import TaskQueue
from projections.job.worker_lease import WorkerLease
from tests.projections.job.jobs_made import accept
from tests.projections.log.helpers import rows
from tests.support.clock import HandClock
from tests.support.feeding import do
from workers.job.housekeeping import Housekeeping
from workers.job.media_paths import MediaPaths
from workers.job.workspaces import Workspaces


async def test_folders_of_ended_jobs_and_leases_of_dead_workers_are_deleted(
    inner: Core, database_url: str, clock: HandClock, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    clock.now = now - timedelta(minutes=11)
    for number in (1, 2, 3):
        await accept(inner, number)
        MediaPaths(tmp_path, number).workspace(1, 1).mkdir(parents=True)
    await do(inner, Job.break_off.on(1))
    clock.now = now
    await do(inner, Job.break_off.on(2))
    await inner.database.execute("INSERT INTO job_workers VALUES ('dead', clock_timestamp() - interval '61 minutes')")
    queue, lease = TaskQueue(inner.database, "work"), WorkerLease(inner.database, host="here")
    workspaces = Workspaces(tmp_path)
    await Housekeeping(queue, lease=lease, workspaces=workspaces).tidy()
    assert rows(database_url, "SELECT FROM job_workers") == []
    assert sorted(await workspaces.jobs()) == [2, 3]

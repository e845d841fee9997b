"""Ended jobs are removed by age, with their secrets. Their events stay."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import httpx

from api.wiring.core import Core
from domain.job.values import JobState
from projections.job.counts import JobCounts
from projections.job.log_lines import Progress, write
from projections.job.queue import QueuedRun
from projections.job.retention import remove_ended_jobs, remove_progress
from projections.kernel.sql.tallies import Tallies
from tests.api.asking import topics
from tests.api.engine.jobs_given import FETCH, bring, openly, single
from tests.support.clock import HandClock

WITH_SECRET = {**FETCH, "custom_data": {"password": "hunter22"}}
ROWS = (
    "SELECT (SELECT count(*) FROM job_view), (SELECT count(*) FROM job_task_view), (SELECT count(*) FROM vault),"
    " (SELECT count(*) FROM job_progress), (SELECT count(*) FROM job_search)"
)
BEFORE = timedelta(days=365)


async def test_ended_jobs_are_removed_with_tasks_secrets_and_progress(
    engine: httpx.AsyncClient, inner: Core, clock: HandClock
) -> None:
    old = [await bring(engine, inner, state, parameters=WITH_SECRET) for state in (JobState.COMPLETED, JobState.BROKEN)]
    waiting = await bring(engine, inner, JobState.STARTED, parameters=WITH_SECRET)
    clock.forward(days=366)
    recent = await bring(engine, inner, JobState.BROKEN, parameters=WITH_SECRET)
    reports = [Progress(QueuedRun(job, 1, 1), 0.5, "half") for job in (*old, waiting, recent)]
    await write(inner.database, lines=[], progress=reports)
    await inner.database.execute("INSERT INTO job_search SELECT id, ARRAY[1] FROM job_view")
    assert await inner.database.row(ROWS) == (4, 8, 4, 4, 4)
    assert await remove_ended_jobs(inner.database, clock.now - BEFORE) == 2
    assert await inner.database.row(ROWS) == (2, 4, 2, 2, 2)
    for job in (waiting, recent):
        await single(engine, job)
    for job in old:
        assert (await openly(engine, f"/engine/jobs/{job}")).status_code == 400
        assert (await topics(inner, f"job:{job}"))[0] == "job.accepted"
    assert await remove_ended_jobs(inner.database, clock.now - BEFORE) == 0


async def test_a_removed_job_is_not_there_for_a_change_or_a_rerun(engine: httpx.AsyncClient, inner: Core, clock: HandClock) -> None:
    old = await bring(engine, inner, JobState.COMPLETED, parameters=WITH_SECRET)
    clock.forward(days=366)
    await remove_ended_jobs(inner.database, clock.now - BEFORE)
    for answer in (
        await engine.post(f"/engine/jobs/{old}/rerun"),
        await engine.put(f"/engine/job/{old}", json={"queue_state": "broken"}),
    ):
        assert (answer.status_code, answer.json()["error"]) == (400, f"There is no job {old}.")


async def test_several_processes_may_remove_while_jobs_are_changed(
    engine: httpx.AsyncClient, inner: Core, clock: HandClock
) -> None:
    old = [await bring(engine, inner, JobState.COMPLETED, parameters=WITH_SECRET) for _ in range(12)]
    clock.forward(days=366)
    tallies = Tallies(inner.database)
    await tallies.add_up()
    removals = (remove_ended_jobs(inner.database, clock.now - BEFORE) for _ in range(3))
    changes = (engine.put(f"/engine/job/{job}", json={"queue_state": "broken"}) for job in old)
    _, removed, *_ = await asyncio.gather(asyncio.gather(*changes), asyncio.gather(*removals), tallies.add_up(), tallies.add_up())
    remaining = await inner.database.rows("SELECT FROM job_view")
    assert sum(removed) + len(remaining) == 12
    assert sum(job.count for job in await JobCounts(inner.database).jobs()) == len(remaining)
    clock.forward(days=366)
    await remove_ended_jobs(inner.database, clock.now - BEFORE)
    assert await inner.database.row(ROWS) == (0, 0, 0, 0, 0)


async def test_progress_goes_some_minutes_after_the_end_of_its_job(
    engine: httpx.AsyncClient, inner: Core, clock: HandClock
) -> None:
    ended, waiting = [await bring(engine, inner, state) for state in (JobState.COMPLETED, JobState.STARTED)]
    await write(inner.database, lines=[], progress=[Progress(QueuedRun(job, 1, 1), 0.5, "half") for job in (ended, waiting)])
    assert await remove_progress(inner.database, clock.now) == 0
    await inner.database.execute("UPDATE job_progress SET updated_at = clock_timestamp() - interval '11 minutes'")
    assert await remove_progress(inner.database, clock.now) == 1
    assert await inner.database.rows("SELECT job FROM job_progress") == [(waiting,)]

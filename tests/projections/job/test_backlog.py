"""Counts of jobs and steps for metrics."""

from __future__ import annotations

import pytest

from api.wiring.core import Core
from domain.job.values import JobState
from projections.job.backlog import JobBacklogQueries

_INSERT = """
INSERT INTO job_view (id, version, state, failed, priority, updated_at, client, workflow, content_id, created_at, parameters,
    search_text, transaction_id, shard)
SELECT %s + n, 1, %s, %s, 5, now() - interval '1 hour', %s, 'w', 'c', now(), '{}', '', 't', 0 FROM generate_series(1, %s) AS n
"""


@pytest.fixture
def backlog(inner: Core) -> JobBacklogQueries:
    return JobBacklogQueries(inner.database.lists)


async def put(inner: Core, first: int, state: JobState, *, client: str, count: int = 1, failed: bool = False) -> None:
    await inner.database.execute(_INSERT, (first, state, failed, client, count))


async def test_an_empty_backlog_is_zero(backlog: JobBacklogQueries) -> None:
    counts = await backlog.all()
    assert (set(counts.jobs.values()), counts.oldest_queued, set(counts.steps.values()), counts.workers) == ({0}, 0, {0}, 0)
    assert list(counts.jobs) == ["queued", "started", "pending", "scheduled", "paused", "failed"]


async def test_jobs_of_all_clients_are_counted_by_state(inner: Core, backlog: JobBacklogQueries) -> None:
    await put(inner, 0, JobState.QUEUED, client="a", count=3)
    await put(inner, 10, JobState.QUEUED, client="b", count=2)
    await put(inner, 20, JobState.STARTED, client="b")
    await put(inner, 30, JobState.PAUSED, client="c", failed=True)
    await put(inner, 40, JobState.COMPLETED, client="c", count=5)
    await put(inner, 50, JobState.COMPLETED, client="c", count=2, failed=True)
    await put(inner, 60, JobState.BROKEN, client="a", failed=True)
    counts = await backlog.all()
    assert counts.jobs == {"queued": 5, "started": 1, "pending": 0, "scheduled": 0, "paused": 1, "failed": 2}
    assert 3600 <= counts.oldest_queued < 7200


async def test_steps_are_counted_by_queue(inner: Core, backlog: JobBacklogQueries) -> None:
    await inner.database.execute(
        "INSERT INTO job_task_view (job, version, task, client, name, queue, state, priority, run, attempts, transaction_id, shard)"
        " SELECT n, 1, 1, 'a', 's', CASE WHEN n = 1 THEN 'other' ELSE 'work' END, n %% 5, 5, 1, 0, 't', 0"
        " FROM generate_series(1, 9) AS n",
        (),
    )
    await inner.database.execute(
        "INSERT INTO job_workers VALUES ('a', now() + interval '1 hour'), ('b', now() - interval '1 hour')"
    )
    counts = await backlog.all()
    counted = {place: count for place, count in counts.steps.items() if count}
    assert counted == {("other", "ready"): 1, ("work", "ready"): 1, ("work", "running"): 4}
    assert counts.workers == 1

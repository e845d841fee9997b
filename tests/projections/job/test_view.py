"""The views of jobs and tasks: their rows, which are the same when written live, written again, and rebuilt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from api.wiring.core import Core
from domain.job.aggregate import Job
from domain.job.values import JobState, Semaphore, TaskState
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.mapper import EventMapper
from projections.consumers.leases import shard_of
from projections.job.view import JOB_TASK_VIEW, JOB_VIEW, SHARDS
from projections.kernel.database.database import Database
from projections.kernel.schema.view import View
from projections.log.rebuild import Rebuilder
from projections.log.streams import Streams
from tests.projections.job.jobs_made import THREE, accept, begin, commit, complete, fail, start, started, update
from tests.support.clock import NOON, HandClock
from tests.support.feeding import as_superuser, do, shown, table, unversioned

VIEWS = (JOB_VIEW, JOB_TASK_VIEW)
LATER = NOON + timedelta(hours=1)
both_views = pytest.mark.parametrize("view", VIEWS, ids=[view.name for view in VIEWS])


@pytest.fixture
async def rebuilder(inner: Core, database_url: str, migrated: tuple[str, str | None]) -> AsyncIterator[Rebuilder]:
    async with Database(database_url, size=4) as owner:
        yield Rebuilder(owner, Streams(owner, EventMapper(inner.catalogue)), app_role=migrated[1])


async def named(inner: Core, view: View[Any]) -> list[dict[str, Any]]:
    names = [column.name for column in view.columns]
    return [dict(zip(names, row, strict=True)) for row in await table(inner.database, view)]


async def some_traffic(inner: Core) -> None:
    """A job in every state, with tasks in every state."""
    await accept(inner, 1, *THREE)
    await started(inner, 2, *THREE)
    await started(inner, 3)
    await begin(inner, 3)
    await complete(inner, 3)
    await accept(inner, 4, semaphore=Semaphore(url="https://semaphore.test/"))
    await started(inner, 5, *THREE)
    await begin(inner, 5)
    await update(inner, 5, queue_state=JobState.BROKEN)
    await accept(inner, 6, run_at=LATER)
    await started(inner, 7, *THREE, client="other")
    await begin(inner, 7)
    await commit(inner, 7)
    await update(inner, 7, queue_state=JobState.PAUSED)
    await started(inner, 8)
    for run in range(1, 5):
        await begin(inner, 8, run=run)
        await fail(inner, 8, run=run)


async def test_the_row_of_a_job_has_a_column_for_every_question(inner: Core, clock: HandClock) -> None:
    semaphore = Semaphore(url="https://semaphore.test/")
    parameters = {"url": "HTTPS://Host", "list": [1, {"deep": "Grüße"}], "n": None}
    await accept(inner, 17, priority=3, run_at=LATER, semaphore=semaphore, workflow="Fetch", content_id="c", parameters=parameters)
    clock.now = NOON + timedelta(minutes=1)
    await update(inner, 17, priority=2)
    [row] = await named(inner, JOB_VIEW)
    assert Semaphore.model_validate_json(row.pop("semaphore")) == semaphore
    assert row == {
        "id": 17,
        "version": 2,
        "client": "studio",
        "workflow": "Fetch",
        "content_id": "c",
        "state": JobState.SCHEDULED,
        "failed": False,
        "reason": "",
        "priority": 2,
        "run_at": LATER,
        "created_at": NOON,
        "updated_at": clock.now,
        "started_at": None,
        "ended_at": None,
        "parameters": '{"url":"HTTPS://Host","list":[1,{"deep":"Grüße"}],"n":null}',
        "search_text": "c\x1ffetch\x1fhttps://host\x1fgrüße",
        "transaction_id": "",
        "shard": shard_of("17", SHARDS),
        "next_queue": "work",
    }


async def test_a_job_that_failed_says_why(inner: Core) -> None:
    await some_traffic(inner)
    rows = {row["id"]: (row["state"], row["failed"], row["reason"]) for row in await named(inner, JOB_VIEW)}
    assert rows[3] == (JobState.COMPLETED, False, "")
    assert rows[8] == (JobState.COMPLETED, True, "the task fetch failed 4 times: no")


async def test_there_is_a_row_for_every_task_and_it_says_when_it_is_ready(inner: Core, clock: HandClock) -> None:
    await accept(inner, 17, *THREE)
    assert [(row["task"], row["state"]) for row in await named(inner, JOB_TASK_VIEW)] == [(n, TaskState.WAITING) for n in (1, 2, 3)]
    await start(inner, 17, slot=1)
    clock.now = LATER
    await begin(inner, 17)
    first, *others = await named(inner, JOB_TASK_VIEW)
    assert first == {
        "job": 17,
        "version": 3,
        "task": 1,
        "client": "studio",
        "name": "fetch",
        "queue": "work",
        "state": TaskState.RUNNING,
        "priority": 5,
        "run": 1,
        "attempts": 1,
        "due_at": None,
        "worker": "w",
        "started_at": LATER,
        "ended_at": None,
        "error": "",
        "transaction_id": "",
        "shard": shard_of("17", SHARDS),
    }
    await complete(inner, 17)
    rows = await named(inner, JOB_TASK_VIEW)
    assert [(row["queue"], row["state"], row["version"]) for row in rows] == [
        ("work", TaskState.COMPLETED, 4),
        ("work", TaskState.READY, 4),
        ("windows_capture", TaskState.READY, 4),
    ]
    assert (rows[0]["ended_at"], len(others)) == (LATER, 2)


async def test_the_priority_of_a_job_is_that_of_its_tasks_at_once(inner: Core) -> None:
    await started(inner, 1, *THREE)
    await update(inner, 1, priority=9)
    assert {row["priority"] for row in await named(inner, JOB_TASK_VIEW)} == {9}


@both_views
async def test_live_is_rebuilt(inner: Core, rebuilder: Rebuilder, view: View[Any]) -> None:
    await some_traffic(inner)
    live = await shown(inner.database, view)
    assert {JobState(row["state"]) for row in await named(inner, JOB_VIEW)} == {*JobState}
    rebuilt = await rebuilder.rebuild(view)
    assert await shown(inner.database, view) == live
    assert rebuilt.rows == len(live) == (8 if view is JOB_VIEW else 16)


@both_views
async def test_a_damaged_view_is_repaired(inner: Core, rebuilder: Rebuilder, database_url: str, view: View[Any]) -> None:
    await some_traffic(inner)
    live = await shown(inner.database, view)
    as_superuser(
        database_url,
        f"DELETE FROM {view.name} WHERE state = 2",
        f"UPDATE {view.name} SET client = 'x', version = version + 50",
        f"INSERT INTO {view.name} ({', '.join(view.key)}, version) VALUES ({', '.join('99' for _ in view.key)}, 1)",
    )
    await rebuilder.rebuild(view)
    assert await shown(inner.database, view) == live


async def feed(inner: Core, view: View[Any], *roots: AggregateRoot) -> None:
    async with inner.database.connection() as connection:
        packed = view.pack([row for root in roots for row in view.rows(root)])
        await connection.execute(view.upsert(view.name, ""), packed, binary=True)


@both_views
async def test_rows_fed_twice_or_late_change_nothing(inner: Core, view: View[Any]) -> None:
    await started(inner, 1, *THREE)
    [old] = (await inner.streams.load.many(["job:1"])).values()
    await begin(inner, 1)
    await complete(inner, 1)
    await started(inner, 2)
    expected = await table(inner.database, view)
    new, other = (await inner.streams.load.many(["job:1", "job:2"])).values()
    for roots in ([old], [new], [old, other], [other, new]):
        await feed(inner, view, *roots)
        assert await table(inner.database, view) == expected


async def test_rows_of_several_jobs_go_in_one_statement(inner: Core) -> None:
    await some_traffic(inner)
    expected = [await shown(inner.database, view) for view in VIEWS]
    roots = (await inner.streams.load.many([f"job:{number}" for number in (3, 1, 2, 8, 5, 7, 6, 4)])).values()
    for view in VIEWS:
        await inner.database.execute(f"DELETE FROM {view.name}")
        await feed(inner, view, *roots)
    assert [await shown(inner.database, view) for view in VIEWS] == expected


async def test_a_refused_command_changes_no_view(inner: Core) -> None:
    await started(inner, 1)
    before = [await table(inner.database, view) for view in VIEWS]
    with pytest.raises(Exception, match="not the current one"):
        await do(inner, Job.start_task.on(1, 1, run=7, worker="w"))
    assert [await table(inner.database, view) for view in VIEWS] == before


async def test_a_rebuild_under_traffic_loses_nothing(inner: Core, rebuilder: Rebuilder) -> None:
    """Jobs are accepted and carried out for as long as both views are rebuilt."""
    for number in range(1, 31):
        await started(inner, number, *THREE)
    rebuilding, last = asyncio.Event(), [30, 0]

    async def work(lane: int) -> None:
        while not rebuilding.is_set():
            last[0] += 1
            number = last[0]
            await started(inner, number, *THREE, client=f"client {lane}")
            for task in (1, 3, 2):
                await begin(inner, number, task)
                await complete(inner, number, task)
            last[1] += 1
            assert len(await inner.database.rows("SELECT FROM job_task_view WHERE job = %s AND state = 4", (number,))) == 3

    async def rebuild() -> None:
        try:
            for view in (*VIEWS, *VIEWS):
                await rebuilder.rebuild(view)
        finally:
            rebuilding.set()

    await asyncio.gather(rebuild(), *map(work, range(3)))
    roots = await inner.streams.load.many([f"job:{number}" for number in range(1, last[0] + 1)])
    expected = sorted(row for root in roots.values() for row in JOB_VIEW.rows(root))
    assert await table(inner.database, JOB_VIEW) == expected
    tasks = sorted(((row[0], row[2]), row) for root in roots.values() for row in JOB_TASK_VIEW.rows(root))
    assert await shown(inner.database, JOB_TASK_VIEW) == [unversioned(JOB_TASK_VIEW, row) for _, row in tasks]
    assert last[1] > 0


async def test_a_job_has_as_many_rows_as_tasks_and_keeps_them(inner: Core) -> None:
    job = await started(inner, 1, *THREE)
    assert [row[2] for row in JOB_TASK_VIEW.rows(job)] == [1, 2, 3]
    await update(inner, 1, queue_state=JobState.BROKEN)
    assert {row["state"] for row in await named(inner, JOB_TASK_VIEW)} == {TaskState.CANCELLED}

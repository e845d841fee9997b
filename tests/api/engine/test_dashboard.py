"""The dashboard and its stream: docs/reference/api/job-engine.md#dashboard."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx
import pytest

from api.engine.broadcast import DashboardBroadcast
from api.engine.client_filter import ClientFilter
from api.engine.dashboard import Dashboards, stream_dashboard
from api.engine.requests import DashboardQuery
from api.http.app import Application
from api.kernel.request import Request
from api.kernel.subscribers import AWAY, FULL
from api.wiring.core import Core
from domain.job.aggregate import Job
from domain.job.values import JobState
from domain.kernel.errors import Unavailable
from projections.job.board import BoardQueries
from projections.job.log_lines import Progress, write
from projections.job.queue import QueuedRun
from projections.job.settings import EngineSettingsQueries
from tests.api.asking import engine_error
from tests.api.engine.jobs_given import FUTURE, bring, do, openly, single, start, submit
from tests.support.application import introduce

PATH = "/engine/dashboard/stream"
LISTS = ("started", "queued", "scheduled")


async def board(engine: httpx.AsyncClient, **headers: str) -> dict[str, Any]:
    asked = engine.build_request("GET", "/engine/dashboard", headers=headers)
    if not headers:
        del asked.headers["client"], asked.headers["api-key"]
    answer = await engine.send(asked)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def ids(shown: dict[str, Any]) -> list[list[int]]:
    return [[job["id"] for job in shown[name]] for name in LISTS]


async def test_an_empty_dashboard(engine: httpx.AsyncClient) -> None:
    shown = await board(engine)
    assert list(shown) == ["max_jobs", "priority_slots", *LISTS, "version"]
    assert (shown["max_jobs"], shown["priority_slots"], ids(shown)) == (2, 0, [[], [], []])
    assert [part.isdigit() for part in shown["version"].split(".")] == [True] * 3


async def test_jobs_are_in_the_order_of_their_lists(engine: httpx.AsyncClient, inner: Core) -> None:
    studio = {"API-KEY": await introduce(inner, "studio", "operator"), "client": "studio"}
    a, b, c = await submit(engine, priority=7), await submit(engine, priority=2), await submit(engine, headers=studio, priority=5)
    late, early = await submit(engine, run_at=FUTURE), await submit(engine, run_at="2031-05-01")
    running = [await bring(engine, inner, JobState.STARTED) for _ in range(2)]
    for state in (JobState.COMPLETED, JobState.BROKEN, JobState.PAUSED, JobState.PENDING):
        await bring(engine, inner, state)
    shown = await board(engine)
    assert ids(shown) == [running, [b, c, a], [early, late]]
    alone = await single(engine, a)
    assert shown["queued"][2] == {name: value for name, value in alone.items() if name not in ("parameters", "top_of_queue")}
    await engine.post("/engine/settings", json={"name": "max_jobs", "setting": 9}, headers=studio)
    theirs = await board(engine, client="studio")
    assert (ids(theirs), theirs["max_jobs"]) == ([[], [c], []], 9)
    assert (await board(engine))["max_jobs"] == 2
    assert ids(await board(engine, client="nobody")) == [[], [], []]


# --- live


async def live(inner: Core, *, pause: float = 0.01) -> DashboardBroadcast:
    dashboards = Dashboards(BoardQueries(inner.database), EngineSettingsQueries(inner.database))
    return DashboardBroadcast(dashboards.read_live, pause=pause)


async def until(frames: AsyncIterator[bytes], wanted: Any) -> dict[str, Any]:
    """The first board of which this is true."""
    async with asyncio.timeout(60):
        async for frame in frames:
            shown: dict[str, Any] = json.loads(frame.removeprefix(b"data: "))
            if wanted(shown):
                return shown
    raise AssertionError("the stream ended")


async def test_a_frame_is_sent_after_a_change_only(engine: httpx.AsyncClient, inner: Core) -> None:
    boards = await live(inner)
    frames = boards.frames(None, has_key=True)
    first = json.loads((await anext(frames)).removeprefix(b"data: "))
    assert first == {**await board(engine), "counts": {"started": 0, "queued": 0, "scheduled": 0}, "tasks": []}
    waiting = asyncio.ensure_future(anext(frames))
    job = await submit(engine)
    shown = json.loads((await waiting).removeprefix(b"data: "))
    assert (ids(shown), shown["counts"]) == ([[], [job], []], {"started": 0, "queued": 1, "scheduled": 0})
    await start(inner, job)
    assert (await until(frames, lambda shown: shown["started"]))["queued"] == []
    await frames.aclose()


async def test_the_first_jobs_of_a_long_queue_are_sent_and_all_are_counted(engine: httpx.AsyncClient, inner: Core) -> None:
    jobs = [await submit(engine) for _ in range(101)]
    frames = (await live(inner)).frames(None, has_key=True)
    shown = await until(frames, lambda shown: shown["counts"]["queued"] == 101)
    assert ids(shown) == [[], jobs[:100], []]
    assert len((await board(engine))["queued"]) == 101
    await frames.aclose()


async def test_progress_of_the_current_run_is_sent(engine: httpx.AsyncClient, inner: Core) -> None:
    boards = await live(inner)
    frames = boards.frames("admin", has_key=True)
    job = await submit(engine)
    await start(inner, job)
    await do(inner, Job.start_task.on(job, 1, run=1, worker="host 1"))
    output = [Progress(QueuedRun(job, 1, 1), 0.25, "a quarter"), Progress(QueuedRun(job, 2, 9), 0.9, "of another run")]
    await write(inner.database, lines=[], progress=output)
    shown = await until(frames, lambda shown: shown["tasks"] and shown["tasks"][0]["fraction"])
    assert shown["tasks"] == [
        {"job_id": job, "task_id": 1, "name": "fetch", "state": "running", "attempts": 1, "fraction": 0.25, "message": "a quarter"},
        {"job_id": job, "task_id": 2, "name": "store", "state": "waiting", "attempts": 0, "fraction": 0.0, "message": ""},
    ]
    await frames.aclose()


async def test_subscribers_of_one_client_share_one_reader(inner: Core) -> None:
    reads: list[str | None] = []

    async def read(client: str | None) -> dict[str, int]:
        reads.append(client)
        return {"n": 1}

    boards = DashboardBroadcast(read, pause=60)
    lookers = [boards.frames(client, has_key=True) for client in (None, None, "admin", None, "admin")]
    assert {await anext(frames) for frames in lookers} == {b'data: {"n":1}\n\n'}
    assert reads == [None, "admin"]
    assert boards.readers == 2
    for frames in lookers:
        await frames.aclose()
    assert boards.readers == 0
    many = [boards.frames(f"client {n}", has_key=True) for n in range(21)]
    reported = [await anext(frames) for frames in many]
    assert (reported.count(FULL), reported[-1]) == (1, FULL)
    for frames in many:
        await frames.aclose()
    assert boards.readers == 0


async def test_some_readers_are_kept_for_callers_with_a_key() -> None:
    async def read(client: str | None) -> dict[str, int]:
        return {"n": 1}

    boards = DashboardBroadcast(read, pause=60)
    strangers = [boards.frames(f"client {n}", has_key=False) for n in range(16)]
    reported = [await anext(frames) for frames in strangers]
    assert (reported.count(FULL), reported[-1]) == (1, FULL)
    ours = boards.frames("ours", has_key=True)
    assert await anext(ours) != FULL
    for frames in (*strangers, ours):
        await frames.aclose()
    assert boards.readers == 0


async def test_names_that_no_client_has_share_a_reader(
    http: httpx.AsyncClient, inner: Core, services_by_type: dict[Any, Any]
) -> None:
    boards = await live(inner)
    request = Request({"type": "http", "method": "GET", "headers": [], "client": ("192.0.2.1", 5)})
    streams = []
    for name in ("made up", "other", "admin"):
        query = DashboardQuery.model_construct(client=name)
        answer = await stream_dashboard(request, query, boards, services_by_type[ClientFilter])
        assert isinstance(answer.content, AsyncGenerator)
        streams.append(answer.content)
        await anext(answer.content)
    assert boards.readers == 2
    for stream in streams:
        await stream.aclose()


async def test_away_and_return_of_the_database_are_sent() -> None:
    faults = iter([Unavailable("away"), Unavailable("away"), RuntimeError("odd")])

    async def read(client: str | None) -> dict[str, int]:
        fault = next(faults, None)
        if fault is not None:
            raise fault
        return {"n": 2}

    frames = DashboardBroadcast(read, pause=0.001).frames(None, has_key=True)
    assert [await anext(frames), await anext(frames)] == [AWAY, b'data: {"n":2}\n\n']
    await frames.aclose()


async def test_the_stream_starts_at_once_and_its_reader_ends_with_it(
    engine: httpx.AsyncClient, application: Application, services_by_type: dict[Any, Any]
) -> None:
    job = await submit(engine)
    sent: asyncio.Queue[Any] = asyncio.Queue()
    gone, requests = asyncio.Event(), iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        for message in requests:
            return message
        await gone.wait()
        return {"type": "http.disconnect"}

    scope = {
        "type": "http",
        "method": "GET",
        "path": PATH,
        "raw_path": PATH.encode(),
        "query_string": b"client=admin",
        "headers": [],
    }
    serving = asyncio.create_task(application(scope, receive, sent.put))
    head, first = await sent.get(), await sent.get()
    assert head["status"] == 200
    assert {(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")} <= set(head["headers"])
    assert ids(json.loads(first["body"].removeprefix(b"data: "))) == [[], [job], []]
    boards: DashboardBroadcast = services_by_type[DashboardBroadcast]
    assert (boards.readers, boards.subscribers.taken) == (1, 1)
    gone.set()
    await serving
    assert (boards.readers, boards.subscribers.taken) == (0, 0)


async def test_query_and_header_may_not_name_different_clients(engine: httpx.AsyncClient) -> None:
    answer = await engine.get(PATH, params={"client": "studio"}, headers={"client": "another"})
    assert engine_error(answer, 400).startswith("client: ")


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ({}, ""),
        ({"job": "17"}, "/17"),
        ({"job": "//evil.example"}, ""),
        ({"job": "1\r\nSet-Cookie: a=b"}, ""),
        ({"client": "a"}, ""),
    ],
)
async def test_the_page_of_earlier_versions_leads_to_the_console(
    engine: httpx.AsyncClient, query: dict[str, str], place: str
) -> None:
    answer = await openly(engine, "/engine/dashboard.html", **query)
    assert (answer.status_code, answer.headers["location"]) == (302, f"/console/jobs{place}")

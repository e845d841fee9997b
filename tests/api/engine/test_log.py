"""The log of a job, made of its events and of the lines of its steps: docs/reference/api/job-engine.md#job-log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

import projections
from api.engine.job_log_text import _RENDERERS
from api.engine.log import LogFollower
from api.kernel.subscribers import AWAY, BEAT, FULL, Subscriber
from api.wiring.core import Core
from domain.job.aggregate import Job, RetryPolicy
from domain.job.events import EVENTS
from domain.job.values import JobState, Output, Result, Severity
from domain.kernel.errors import Unavailable
from domain.kernel.mapper import EventMapper
from projections.job.history import BEGINNING, JobHistory, LogCursor, LogEvent, LogLine
from projections.job.log_lines import JobLogLine, write
from projections.job.queries import JobQueries
from tests.api.asking import engine_error
from tests.api.engine.jobs_given import (
    FETCH,
    FUTURE,
    NEVER,
    bring,
    come_due,
    complete,
    do,
    fail,
    openly,
    request,
    start,
    submit,
)

FIELDS = [
    "id",
    "job_id",
    "severity",
    "severity_description",
    "progname",
    "message",
    "created_at",
    "updated_at",
    "task_id",
    "visible",
    "pictures",
]


async def records(engine: httpx.AsyncClient, job: int) -> list[dict[str, Any]]:
    answer = await engine.get(f"/engine/logs/{job}")
    assert answer.status_code == 200, answer.text
    reported: list[dict[str, Any]] = answer.json()
    assert all(list(record) == FIELDS and record["job_id"] == job for record in reported)
    assert len({record["id"] for record in reported}) == len(reported)
    return reported


def texts_of(lines: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(record["severity_description"], record["progname"], record["message"]) for record in lines]


async def say(inner: Core, job: int, *messages: str, severity: Severity = Severity.INFO, at: datetime | None = None) -> None:
    moment = at or datetime.now(UTC)
    await write(inner.database, lines=[JobLogLine(job, 1, severity, message, moment) for message in messages], progress=[])


def test_every_event_has_a_log_message() -> None:
    assert set(_RENDERERS) == set(EVENTS)


async def test_the_first_record_is_the_masked_request(engine: httpx.AsyncClient) -> None:
    parameters = {**FETCH, "custom_data": {"token": "very-secret"}}
    semaphore = "https://semaphore.test/open?token=very-secret"
    answer = await engine.post("/engine/job", json=request(parameters, priority=2, run_at=FUTURE, sempahore_url=semaphore))
    first = (await records(engine, answer.json()["id"]))[0]
    assert (first["severity"], first["severity_description"], first["progname"]) == (1, "INFO", "api")
    assert (first["task_id"], first["visible"]) == (None, True)
    reported = json.loads(first["message"])
    assert reported.pop("headers")["api-key"] == "****"
    assert reported == {
        "client": "admin",
        "job": {"workflow": "http_fetch_verify", "priority": 2, "run_at": FUTURE, "sempahore_url": "https://semaphore.test/open"},
        "parameters": {**FETCH, "custom_data": {"token": "****"}},
    }


async def test_actions_of_clients_are_logged_with_their_names(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await submit(engine, run_at=FUTURE)
    for body in (
        {"priority": 1},
        {"run_at": "2031-05-01"},
        {"run_at": "2031-01-01"},
        {"sempahore_url": "https://semaphore.test/?x=very-secret"},
        {"sempahore_url": None},
        {"queue_state": "paused"},
        {"queue_state": "queued"},
    ):
        assert (await engine.put(f"/engine/job/{job}", json=body)).status_code == 200, body
    again = (await engine.post(f"/engine/jobs/{job}/rerun")).json()["id"]
    reported = texts_of(await records(engine, job))[1:]
    assert [record[1] for record in reported] == ["api"] * len(reported)
    assert [record[2] for record in reported] == [
        "admin changed the priority from 5 to 1",
        "admin scheduled the job for 2031-05-01T00:00:00.000Z",
        "admin set run_at to 2031-01-01T00:00:00.000Z, which is in the past: the job is due",
        "admin set the semaphore to https://semaphore.test/",
        "admin removed the semaphore",
        "admin paused the job",
        "admin resumed the job",
        f"admin broke the job; it runs again as job {again}",
    ]
    assert json.loads((await records(engine, again))[0]["message"])["rerun_of"] == job


async def test_actions_of_the_engine_are_logged_with_the_program(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await bring(engine, inner, JobState.PENDING)
    await come_due(inner, job)
    await start(inner, job)
    await do(inner, Job.start_task.on(job, 1, run=1, worker="host 1"))
    await do(inner, Job.interrupt_task.on(job, 1, run=1))
    await do(inner, Job.start_task.on(job, 1, run=2, worker="host 2"))
    await do(inner, Job.fail_task.on(job, 1, run=2, error="no such host", retries=RetryPolicy(3, timedelta(0))))
    await do(inner, Job.start_task.on(job, 1, run=3, worker="host 1"))
    names = ("film/a", "film/b.JPG", ".jobs/1/files/c.jpg", "film/d/é.gif")
    outputs = tuple(Output(path=str(number), name=name, size=1, sha256="0" * 64) for number, name in enumerate(names))
    await do(inner, Job.commit_outputs.on(job, 1, run=3, outputs=outputs, result=Result(message="got it")))
    await do(inner, Job.complete_task.on(job, 1, run=3))
    await do(inner, Job.start_task.on(job, 2, run=1, worker="host 1"))
    await do(inner, Job.expire_lease.on(job, 2, run=1, retries=NEVER))
    reported = await records(engine, job)
    at = "2031-01-02T12:00:00.000Z"
    assert texts_of(reported)[1:] == [
        ("INFO", "scheduler", "The job is due and is queued"),
        ("INFO", "controller", "The job is started in slot 1"),
        ("INFO", "worker", "host 1 started the task fetch, attempt 1"),
        ("INFO", "worker", "The task fetch was returned to the queue by a worker that is stopping"),
        ("INFO", "worker", "host 2 started the task fetch, attempt 1"),
        ("WARN", "worker", f"The task fetch failed at attempt 1: no such host; it will be retried at {at}"),
        ("INFO", "worker", "host 1 started the task fetch, attempt 2"),
        ("INFO", "worker", f"The task fetch publishes {', '.join(names)}: got it"),
        ("INFO", "worker", "The task fetch is completed"),
        ("INFO", "worker", "host 1 started the task store, attempt 1"),
        ("ERROR", "worker", "The worker of the task store was lost at attempt 1"),
        ("ERROR", "worker", "The job is abandoned: the worker of the task store was lost at attempt 1, the last one"),
    ]
    assert [record["task_id"] for record in reported] == [None] * 3 + [1] * 7 + [2, 2, None]
    assert [record["visible"] for record in reported] == [record["severity"] > 0 for record in reported]
    assert [record["pictures"] for record in reported if record["pictures"]] == [["film/b.JPG", "film/d/é.gif"]]


async def test_ids_count_up_in_the_order_of_writing(engine: httpx.AsyncClient, inner: Core) -> None:
    job, other = await submit(engine), await submit(engine)
    await start(inner, job)
    await do(inner, Job.start_task.on(job, 1, run=1, worker="host 1"))
    await say(inner, job, "<b>one</b>", "two", severity=Severity.WARN)
    await say(inner, other, "not ours")
    await do(inner, Job.complete_task.on(job, 1, run=1, result=Result(message="done")))
    reported = await records(engine, job)
    assert texts_of(reported)[3:] == [
        ("WARN", "worker", "<b>one</b>"),
        ("WARN", "worker", "two"),
        ("INFO", "worker", "The task fetch is completed: done"),
    ]
    assert [record["created_at"] for record in reported] == sorted(record["created_at"] for record in reported)
    ids = [record["id"] for record in reported]
    assert ids == sorted(ids)
    await say(inner, job, "late", at=datetime(2020, 1, 1, tzinfo=UTC))
    await do(inner, Job.start_task.on(job, 2, run=1, worker="host 1"))
    await say(inner, job, "last")
    again = await records(engine, job)
    assert again[: len(reported)] == reported
    assert [message for _, _, message in texts_of(again)[len(reported) :]] == [
        "late",
        "host 1 started the task store, attempt 1",
        "last",
    ]
    ids = [record["id"] for record in again]
    assert ids == sorted(ids)


async def test_lines_of_before_get_numbers_between_those_of_the_events(engine: httpx.AsyncClient, inner: Core) -> None:
    job, other = await submit(engine), await submit(engine)
    add = "INSERT INTO job_log_lines (job, task, severity, message, created_at) VALUES (%s, 1, 1, %s, clock_timestamp())"
    await inner.database.execute(add, (job, "one"))
    await inner.database.execute(add, (other, "not ours"))
    await inner.database.execute(add, (job, "two"))
    await start(inner, job)
    await inner.database.execute(add, (job, "three"))
    migration = (Path(projections.__file__).parent / "job/line_numbers.sql").read_text()
    await inner.database.execute(migration[migration.index("WITH placed") :])
    reported = await records(engine, job)
    assert [record["message"] for record in reported[1:]] == ["one", "two", "The job is started in slot 1", "three"]
    ids = [record["id"] for record in reported]
    assert ids == sorted(ids)


async def test_an_unknown_job_has_no_log(engine: httpx.AsyncClient) -> None:
    job = await submit(engine)
    for path in ("/engine/logs/987654", "/engine/logs/x", "/engine/logs/987654/stream", "/engine/logs/-1/stream"):
        assert engine_error(await openly(engine, path), 400)
    answer = await engine.get(f"/engine/logs/{job}", headers={"client": "studio"})
    assert engine_error(answer, 400)


# --- following


def followers(inner: Core) -> LogFollower:
    history = JobHistory(inner.database, EventMapper(inner.catalogue))
    return LogFollower(JobQueries(inner.database), history, pause=0.01)


def parsed(frames: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Return the id or the name of the event of each message, and its data."""
    reported = []
    for frame in frames.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in frame.split("\n") if ": " in line)
        if fields:
            reported.append((fields.get("id") or fields["event"], json.loads(fields["data"])))
    return reported


async def test_the_stream_of_an_ended_job_sends_all_records_and_ends(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await submit(engine)
    await complete(inner, job)
    answer = await engine.get(f"/engine/logs/{job}/stream")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    reported = parsed(answer.content)
    assert [data for _, data in reported[:-1]] == await records(engine, job)
    assert reported[-1] == ("end", {})


async def test_last_event_id_continues_the_stream(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await submit(engine)
    await say(inner, job, "one")
    await complete(inner, job)
    await say(inner, job, "two")
    existing = await _all(followers(inner).frames(job, BEGINNING, in_full=True))

    async def told_after(seen: str) -> list[tuple[str, Any]]:
        asked = engine.build_request("GET", f"/engine/logs/{job}/stream", headers={"Last-Event-ID": seen})
        return parsed((await engine.send(asked)).content)

    reported = await asyncio.gather(*(told_after(seen) for seen, _ in existing[:-1]))
    assert reported == [existing[at + 1 :] for at in range(len(existing) - 1)]
    nonsense = ("x", "1", ".", "1.2.3", "9" * 40)
    assert await asyncio.gather(*map(told_after, nonsense)) == [existing] * len(nonsense)


async def test_records_are_sent_as_they_come_until_the_job_ends(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await submit(engine)
    stream = followers(inner).frames(job, BEGINNING, in_full=True)
    assert json.loads(parsed(await anext(stream))[0][1]["message"])["parameters"] == FETCH
    await start(inner, job)
    assert parsed(await anext(stream))[0][1]["progname"] == "controller"
    await say(inner, job, "a line\nwith a break")
    assert parsed(await anext(stream))[0][1]["message"] == "a line\nwith a break"
    await engine.put(f"/engine/job/{job}", json={"queue_state": "broken"})
    assert parsed(await anext(stream))[0][1]["message"] == "admin broke the job"
    await say(inner, job, "the last words of a step")
    rest = await _all(stream)
    assert [data.get("message") for _, data in rest] == ["the last words of a step", None]


async def test_a_failed_job_ends_its_stream_with_the_reason(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await submit(engine)
    await fail(inner, job)
    reported = await _all(followers(inner).frames(job, LogCursor(0, 0), in_full=True))
    assert reported[-2][1]["message"] == "The job is abandoned: the task fetch failed: no such host"


class Interrupted(LogFollower):
    """A follower whose database is unavailable at some polls."""

    looks = 0

    async def poll(self, job: int, cursor: LogCursor) -> tuple[bool, Sequence[LogEvent | LogLine]]:
        self.looks += 1
        if self.looks in {2, 3}:
            raise Unavailable("away")
        return await super().poll(job, cursor)


async def test_away_and_return_of_the_database_are_sent_without_new_records(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await submit(engine)
    follow = Interrupted(JobQueries(inner.database), JobHistory(inner.database, EventMapper(inner.catalogue)), pause=0.01)
    stream = follow.frames(job, BEGINNING, in_full=True)
    await anext(stream)
    assert [await anext(stream) for _ in range(3)] == [AWAY, AWAY, BEAT]
    await stream.aclose()


async def test_the_number_of_subscribers_is_limited(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await submit(engine)
    follow = followers(inner)
    follow.subscribers._most = 8  # a quarter is one client's
    existing = Subscriber("192.0.2.1", has_key=True)
    first, second, third = [
        follow.subscribers.within_limit(follow.frames(job, BEGINNING, in_full=True), existing) for _ in range(3)
    ]
    await anext(first)
    await anext(second)
    assert await anext(third) == FULL
    with pytest.raises(StopAsyncIteration):
        await anext(third)
    await first.aclose()
    assert follow.subscribers.taken == 1
    again = follow.subscribers.within_limit(follow.frames(job, BEGINNING, in_full=True), existing)
    assert await anext(again) != FULL
    await asyncio.gather(second.aclose(), again.aclose())
    assert follow.subscribers.taken == 0


async def _all(stream: AsyncIterator[bytes]) -> list[tuple[str, dict[str, Any]]]:
    return parsed(b"".join([frame async for frame in stream]))


async def test_a_long_log_has_pages(engine: httpx.AsyncClient, inner: Core) -> None:
    job = await submit(engine)
    await say(inner, job, *(f"line {number}" for number in range(7)))
    whole = await records(engine, job)
    path: str | None = f"/engine/logs/{job}?items=2"
    seen: list[Any] = []
    while path is not None:
        answer = await engine.get(path)
        assert 0 < len(answer.json()) <= 2
        seen += answer.json()
        path = answer.links["next"]["url"] if "next" in answer.links else None
    assert len(whole) > 7
    assert sorted(record["id"] for record in seen) == sorted(record["id"] for record in whole)
    assert (await engine.get(f"/engine/logs/{job}?after=x")).status_code == 400

"""The view of jobs for callers without a key: no credentials, and no internal addresses."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.engine.surface import ENGINE
from api.http.app import Application
from api.http.routing import routes_of
from api.wiring.core import Core
from api.wiring.services import ROUTES
from domain.job.aggregate import Job
from domain.job.values import Severity
from domain.kernel.internal_addresses import InternalAddresses
from projections.job.log_lines import JobLogLine, Progress, write
from projections.job.queue import QueuedRun
from tests.api.engine.jobs_given import NEVER, do, request, start
from tests.domain.kernel.secrets_given import ADDRESSES, GIVEN, HARMLESS_ADDRESSES, TOKENS
from tests.support.application import introduce
from tests.support.services import services
from workers.adapters.media_directory import MediaDirectory
from workers.adapters.outbound_http import GuardedClient

OWN = "media.inside-test.example"
MACHINE = "encoder-room-7/4711"
SAYINGS = {
    **{token: token for token in TOKENS},
    **{text.format(secret): secret for text, secret in GIVEN},
    **{address: address for address in ADDRESSES},
}
"""Texts, each with the part of it that must stay hidden."""


@pytest.fixture
def services_by_type(inner: Core, database_url: str, outbound: GuardedClient, media_root: Path) -> dict[Any, Any]:
    """The services of the endpoints for a server with a public address."""
    files = MediaDirectory(media_root)
    return services(inner, outbound=outbound, files=files, given={InternalAddresses: InternalAddresses([OWN])})


@pytest.fixture
async def stranger(http: httpx.AsyncClient) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=http._transport, base_url=http.base_url) as client:
        yield client


@pytest.fixture
async def job(engine: httpx.AsyncClient, inner: Core) -> int:
    """A failed job in whose parameters, callbacks, log lines, progress and errors all of it stands."""
    output = list(SAYINGS)
    parameters = {
        "content_id": "film",
        "url": "https://origin.test/a.mp4",
        "custom_data": {f"note {place}": text for place, text in enumerate(output)},
        "callback_urls": ["https://hooks.example.com/in?key=callback-hunter2"],
    }
    answer = await engine.post("/engine/job", json=request(parameters))
    assert answer.status_code == 200, answer.text
    number = int(answer.json()["id"])
    await start(inner, number)
    await do(inner, Job.start_task.on(number, 1, run=1, worker=MACHINE))
    lines = [JobLogLine(number, 1, Severity.WARN, f"it said: {text}", datetime.now(UTC)) for text in output]
    await write(
        inner.database, lines=lines, progress=[Progress(QueuedRun(number, 1, 1), 0.5, f"reads {ADDRESSES[0]} with {TOKENS[0]}")]
    )
    return number


async def fail(inner: Core, number: int) -> None:
    await do(inner, Job.fail_task.on(number, 1, run=1, error="; ".join(SAYINGS), retries=NEVER))


def open_paths(number: int) -> list[str]:
    """All open calls of the engine."""
    return sorted(
        spec.documented_path.replace("{job_id}", str(number))
        for spec in routes_of(ROUTES)
        if spec.surface is ENGINE and not spec.permission.roles
    )


def leaks(text: str) -> list[str]:
    """Return the secrets in a text, also from JSON inside JSON."""
    spellings = {secret: {secret, json.dumps(secret)[1:-1], json.dumps(json.dumps(secret))[3:-3]} for secret in SAYINGS.values()}
    spellings[MACHINE] = {MACHINE}
    spellings["callback-hunter2"] = {"callback-hunter2"}
    return [secret for secret, forms in spellings.items() if any(form in text for form in forms)]


async def read(caller: httpx.AsyncClient, number: int, path: str, headers: dict[str, str]) -> str:
    query = {"job_ids": str(number)} if path == "/engine/tasks" else None
    answer = await caller.get(path, params=query, headers=headers)
    assert answer.status_code in (200, 302), (path, answer.text)
    return answer.text


@pytest.mark.parametrize("headers", [{}, {"API-KEY": "wrong"}, {"API-KEY": "a", "Authorization": "Bearer b"}])
async def test_no_secret_and_no_inner_address_comes_out_without_a_key(
    stranger: httpx.AsyncClient, inner: Core, job: int, application: Application, headers: dict[str, str]
) -> None:
    application.drain()  # a stream that never ends does so at once
    reported = {path: await read(stranger, job, path, headers) for path in open_paths(job) if not path.startswith("/engine/logs/")}
    await fail(inner, job)
    reported |= {f"{path} of a failed job": await read(stranger, job, path, headers) for path in open_paths(job)}
    assert {path: leaks(text) for path, text in reported.items() if leaks(text)} == {}
    assert len(reported[f"/engine/logs/{job} of a failed job"]) > 4_000, "the lines are there"


async def test_a_key_shows_all_and_a_session_of_a_packager_does_not(
    engine: httpx.AsyncClient, stranger: httpx.AsyncClient, inner: Core, job: int
) -> None:
    await fail(inner, job)
    viewer = {"API-KEY": await introduce(inner, "viewer", "viewer")}
    packager = {"API-KEY": await introduce(inner, "packager", "keys")}
    for path, part in (
        (f"/engine/logs/{job}", ADDRESSES[3]),
        (f"/engine/jobs/{job}/tasks", MACHINE),
        (f"/engine/jobs/{job}", ADDRESSES[1]),
    ):
        assert part in await read(stranger, job, path, viewer), path
        assert leaks(await read(stranger, job, path, packager)) == [], path


async def test_the_rest_of_a_job_is_shown_to_everybody(engine: httpx.AsyncClient, stranger: httpx.AsyncClient) -> None:
    parameters: dict[str, Any] = {
        "content_id": "film",
        "url": HARMLESS_ADDRESSES[0],
        "custom_data": {"title": "The final: part 2", "n": [1, None]},
    }
    number = (await engine.post("/engine/job", json=request(parameters))).json()["id"]
    ours = (await engine.get(f"/engine/jobs/{number}")).json()
    assert (await stranger.get(f"/engine/jobs/{number}")).json() == ours
    assert ours["parameters"] == parameters
    assert (await stranger.get("/engine/jobs")).json() == (await engine.get("/engine/jobs")).json()


async def test_a_list_without_a_key_has_fewer_parameters(engine: httpx.AsyncClient, stranger: httpx.AsyncClient) -> None:
    large = {"content_id": "film", "url": HARMLESS_ADDRESSES[0], "custom_data": "a b " * 16_000}
    for _ in range(6):
        assert (await engine.post("/engine/job", json=request(large))).status_code == 200
    shown = [job["parameters"] is not None for job in (await stranger.get("/engine/jobs")).json()]
    assert (shown, [job["parameters"] is not None for job in (await engine.get("/engine/jobs")).json()]) == (
        [True] * 4 + [False] * 2,
        [True] * 6,
    )

"""The error responses of the job engine: docs/reference/api/job-engine.md#errors."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import APIRouter

from api.engine.surface import EngineRoute
from api.http.openapi import describe
from api.http.request import Request
from api.http.response import Response
from api.http.routing import OPEN
from api.kernel.app import build
from api.kernel.auth import WRITE
from api.kernel.wire import Integer, Wire
from api.wiring.services import ROUTES
from domain.kernel.encryption import KeyedHash
from domain.kernel.errors import Conflict, FieldError, Malformed, NotFound, PreconditionFailed, Refused, Unavailable
from tests.api.asking import engine_error
from tests.api.http.toy import SECRET, MemoryIdempotency, authenticate

FAULTS: dict[str, Exception] = {
    "malformed": Malformed(FieldError("job.priority", "1 to 10"), FieldError("parameters.url", "is required")),
    "absent": NotFound("job", "17"),
    "refused": Refused("a completed job cannot be resumed"),
    "conflict": Conflict("somebody was first"),
    "stale": PreconditionFailed(3),
    "down": Unavailable("the database is down", retry_after=7),
    "bug": RuntimeError(SECRET),
}
jobs = APIRouter(prefix="/engine", tags=["Job engine"], route_class=EngineRoute)


class Body(Wire):
    fault: str
    priority: Integer = 5


@jobs.post("/job", dependencies=[WRITE])
async def create(request: Request, body: Body) -> Response:
    raise FAULTS[body.fault]


@jobs.put("/job/{job_id}", dependencies=[WRITE])
async def change(request: Request, job_id: int, body: Body) -> Response:
    raise FAULTS[body.fault]


@jobs.get("/jobs/{job_id}", dependencies=[OPEN])
async def single_job(request: Request, job_id: int) -> Response:
    raise FAULTS["absent"]


@jobs.get("/health", dependencies=[WRITE])
async def health(request: Request) -> Response:
    raise FAULTS["bug"]


@pytest.fixture
async def caller() -> AsyncIterator[httpx.AsyncClient]:
    app = build([jobs], {}, authenticate=authenticate, idempotency=MemoryIdempotency(), fingerprint=KeyedHash(bytes(32)))
    headers = {"API-KEY": SECRET, "client": "admin"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://engine.test", headers=headers) as client:
        yield client


@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        ("malformed", 400, "job.priority: 1 to 10; parameters.url: is required"),
        ("absent", 400, "There is no job 17."),
        ("refused", 400, "a completed job cannot be resumed"),
        ("conflict", 409, "somebody was first"),
        ("stale", 412, "Changed meanwhile: the current version is 3."),
        ("down", 503, "the database is down"),
    ],
)
async def test_an_error_has_the_id_of_the_job(caller: httpx.AsyncClient, fault: str, status: int, error: str) -> None:
    created = await caller.post("/engine/job", json={"fault": fault})
    assert engine_error(created, status) == error
    assert list(created.json().items()) == [("id", None), ("error", error)]
    changed = await caller.put("/engine/job/17/", json={"fault": fault})
    assert (changed.status_code, changed.json()) == (status, {"id": 17, "error": error})
    assert created.headers.get("retry-after") == ("7" if fault == "down" else None)


async def test_errors_before_the_job_is_read_have_its_id(caller: httpx.AsyncClient) -> None:
    for job, shown in (("17", 17), ("%31%37", 17), ("x", None), ("-3", None), ("1e3", None), ("9" * 30, None), ("１", None)):
        path = f"/engine/job/{job}"
        for answer, status in (
            (await caller.put(path, json={}), 400),
            (await caller.put(path, content=b"[", headers={"content-type": "application/json"}), 400),
            (await caller.put(path, content=b'{"fault": "absent"}'), 415),
            (await caller.put(path, content=b"x", headers={"content-type": "text/plain"}), 415),
            (await caller.put(path, content=b" " * 2_000_000), 413),
            (await caller.put(path, json={"fault": "absent"}, headers={"X-Transaction-ID": "x" * 200}), 400),
            (await caller.put(path, json={"fault": "absent"}, headers={"API-KEY": "wrong"}), 401),
        ):
            assert engine_error(answer, status)
            assert answer.json()["id"] == shown, path


async def test_errors_of_other_routes_have_no_id(caller: httpx.AsyncClient) -> None:
    for answer, status in (
        (await caller.get("/engine/jobs/17"), 400),
        (await caller.get("/engine/jobs/x"), 400),
        (await caller.get("/engine/job"), 405),
        (await caller.get("/engine/nothing"), 404),
        (await caller.get("/engine/job/1/2"), 404),
    ):
        assert engine_error(answer, status)
        assert list(answer.json()) == ["error"]
    assert (await caller.get("/engine/job")).headers["allow"] == "POST"


async def test_a_protected_route_requires_the_header_client(caller: httpx.AsyncClient) -> None:
    del caller.headers["client"]
    for headers in ({}, {"client": "viewer"}, {"client": "admin", "API-KEY": ""}, {"client": "admin", "API-KEY": "wrong"}):
        answer = await caller.post("/engine/job", json={"fault": "absent"}, headers=headers)
        assert engine_error(answer, 401)
        assert answer.headers["www-authenticate"] == 'ApiKey, Bearer realm="api"'
    viewer = {"client": "viewer", "API-KEY": "mlk_viewer"}
    assert engine_error(await caller.post("/engine/job", json={"fault": "absent"}, headers=viewer), 403)
    operator = {"CLIENT": "operator", "x-auth-key": "mlk_operator", "API-KEY": ""}
    assert engine_error(await caller.post("/engine/job", json={"fault": "absent"}, headers=operator), 400)
    assert engine_error(await caller.get("/engine/jobs/17", headers={"client": "nobody", "API-KEY": "wrong"}), 400)


async def test_an_unforeseen_fault_is_plain_text_except_for_the_health(caller: httpx.AsyncClient) -> None:
    for answer in (
        await caller.post("/engine/job", json={"fault": "bug"}),
        await caller.put("/engine/job/17", json={"fault": "bug"}),
    ):
        assert (answer.status_code, answer.headers["content-type"]) == (500, "text/plain; charset=utf-8")
        assert answer.text.count("\n") == 1
        assert SECRET not in answer.text
    answer = await caller.get("/engine/health")
    assert SECRET not in engine_error(answer, 500)


def test_the_document_shows_the_error_and_that_the_client_is_required() -> None:
    document = describe(ROUTES, title="t", version="0")
    operation = document["paths"]["/engine/settings"]["post"]
    schema = operation["responses"]["400"]["content"]["application/json"]["schema"]
    error = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    assert (error["required"], list(error["properties"])) == (["error"], ["error", "id"])
    client = next(parameter for parameter in operation["parameters"] if parameter.get("name") == "client")
    assert (client["in"], client["required"]) == ("header", True)
    media = document["paths"]["/api/room/"]["post"]["parameters"]
    assert {"$ref": "#/components/parameters/client"} in media

"""The framework without the product: what it does where an application hands nothing in."""

from __future__ import annotations

import io

import httpx
import pytest
from fastapi import APIRouter
from prometheus_client import CollectorRegistry, generate_latest

from api.http.app import Application, build
from api.http.model import Wire
from api.http.request import Caller, Request
from api.http.response import Response
from api.http.routing import Route, requires
from api.http.surface import Surface
from api.kernel.authentication import Authorizer
from api.kernel.log import RequestLog
from domain.kernel.clock import system_clock

STAFF = requires("staff")
PLAIN = Surface("plain")


class NoteRoute(Route):
    surface = PLAIN


router = APIRouter(prefix="/note", route_class=NoteRoute)


class Note(Wire):
    text: str
    weight: float = 1.0


@router.post("/", dependencies=[STAFF], status_code=201)
async def add_note(request: Request, body: Note) -> Response:
    return Response({"text": body.text, "by": request.caller.name}, 201)


@router.get("/{number}", dependencies=[STAFF])
async def get_note(request: Request, number: int) -> Response:
    return Response({"halves": 1 / number})


async def authenticate(key: str) -> Caller | None:
    return {"k": Caller("ann", STAFF.roles), "guest": Caller("bob", frozenset())}.get(key)


def application(registry: CollectorRegistry) -> Application:
    return build(
        [router],
        {},
        authorize=Authorizer(authenticate),
        fallback=PLAIN,
        registry=registry,
        request_log=RequestLog(io.StringIO(), clock=system_clock),
        title="notes",
        version="1",
    )


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def bare(registry: CollectorRegistry) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(application(registry))
    return httpx.AsyncClient(transport=transport, base_url="http://notes.example", headers={"API-KEY": "k"})


async def test_a_body_is_bound_and_its_caller_known(bare: httpx.AsyncClient) -> None:
    answer = await bare.post("/note", json={"TEXT": "a"}, headers={"Idempotency-Key": "means nothing here"})
    assert (answer.status_code, answer.json()) == (201, {"text": "a", "by": "ann"})


@pytest.mark.parametrize(
    ("sent", "field"), [(b"{", "body"), (b'{"text": "a", "weight": NaN}', "body"), (b"{}", "text"), (b'{"text": 1}', "text")]
)
async def test_what_does_not_fit_is_400_and_names_the_field(bare: httpx.AsyncClient, sent: bytes, field: str) -> None:
    answer = await bare.post("/note", content=sent, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert [error["field"] for error in answer.json()["errors"]] == [field]


async def test_a_role_is_any_text(bare: httpx.AsyncClient) -> None:
    answer = await bare.get("/note/2", headers={"API-KEY": "guest"})
    assert (answer.status_code, answer.json()["detail"]) == (403, "This call needs the role staff.")


async def test_an_exception_that_nobody_foresaw_is_500(bare: httpx.AsyncClient) -> None:
    answer = await bare.get("/note/0")
    assert answer.status_code == 500
    assert "division" not in answer.text


async def test_head_is_answered_where_get_is(bare: httpx.AsyncClient) -> None:
    answer = await bare.head("/note/2")
    assert (answer.status_code, answer.content) == (200, b"")
    assert (await bare.put("/note/2")).headers["allow"] == "GET, HEAD"


async def test_metrics_begin_with_the_name_of_the_application(bare: httpx.AsyncClient, registry: CollectorRegistry) -> None:
    await bare.get("/note/2")
    await bare.get("/nothing")
    shown = generate_latest(registry).decode()
    assert 'notes_http_requests_total{method="GET",route="/note/{number}",status="200",surface="plain"} 1.0' in shown
    assert 'notes_http_requests_total{method="other",route="unknown",status="404",surface="plain"} 1.0' in shown

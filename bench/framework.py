"""The HTTP layer alone, without socket and database: the product's application, FastAPI's binding behind its checks, FastAPI.

*Ours* has the product's application class and binds the endpoint itself. *Bound by FastAPI* is the same route with a dependency, so
FastAPI binds it after the checks. *FastAPI* is an application of FastAPI's own, which checks no key.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import datetime
from typing import Annotated, Any
from uuid import uuid4

import uvloop
from fastapi import APIRouter, Depends, FastAPI
from prometheus_client import CollectorRegistry

from api.http.app import Application, build
from api.http.model import Wire
from api.http.request import Caller, Request
from api.http.response import Response
from api.http.routing import Route, requires
from api.http.surface import Surface
from bench import schedule, trivial
from bench.ground import Ground, in_turns
from bench.report import Result, Table, middle

Asgi = Callable[[Any, Any, Any], Awaitable[None]]
_STAFF = requires("operator")
_CALLER = Caller("bench", _STAFF.roles)
_REQUESTS = 2_000


class BenchRoute(Route):
    """A route of the bench."""

    surface = Surface("bench")


class Posted(Wire):
    """The members that `bench.schedule.post_body` sends."""

    title: str
    ref_id: str
    external_id: str
    description: str
    scheduled_start: datetime
    scheduled_end: datetime
    auto_start: bool
    auto_end: bool
    auto_publish: bool


async def _nothing() -> None: ...


router = APIRouter(prefix="/x", route_class=BenchRoute)
bound = APIRouter(prefix="/x", route_class=BenchRoute)


@router.post("/echo", dependencies=[_STAFF], status_code=201)
async def echo(request: Request, body: Posted) -> Response:
    """Return the body and an id."""
    return Response({"id": str(uuid4()), **body.__dict__}, 201)


@router.get("/{id}", dependencies=[_STAFF])
async def by_id(request: Request, id: int) -> Response:
    """Return the id."""
    return Response({"id": id})


@bound.post("/echo", dependencies=[_STAFF], status_code=201)
async def echo_with_dependency(request: Request, body: Posted, nothing: Annotated[None, Depends(_nothing)]) -> Response:
    """Return the body and an id."""
    return Response({"id": str(uuid4()), **body.__dict__}, 201)


@bound.get("/{id}", dependencies=[_STAFF])
async def by_id_with_dependency(request: Request, id: int, nothing: Annotated[None, Depends(_nothing)]) -> Response:
    """Return the id."""
    return Response({"id": id})


async def _authorize(request: Request, route: Route) -> Caller:
    return _CALLER


class _NoLog:
    def wants(self, method: str, status: int, *, routine: bool) -> bool:
        return False

    def add(self, request: Request, *, status: int, seconds: float) -> None: ...

    def flush(self) -> None: ...


def _ours(routes: APIRouter) -> Application:
    return build(
        [routes],
        {},
        authorize=_authorize,
        fallback=BenchRoute.surface,
        registry=CollectorRegistry(),
        request_log=_NoLog(),
        title="bench",
        version="0",
    )


def _plain() -> FastAPI:
    app = FastAPI(openapi_url=None)
    app.include_router(trivial.application().router, prefix="/x")

    @app.get("/x/{id}")
    async def by_id(id: int) -> dict[str, int]:
        return {"id": id}

    return app


def framework(ground: Ground) -> Result:
    """(p) one request through the HTTP layer alone: the product's application, the same bound by FastAPI, FastAPI."""
    body = schedule.post_bodies(1)[0].encode()
    apps: dict[str, Asgi] = {"ours": _ours(router), "bound by FastAPI": _ours(bound), "FastAPI": _plain()}
    requests = {"GET": ("/x/4711", b""), "POST": ("/x/echo", body)}
    cells: dict[str, Callable[[], float]] = {
        f"{method} {name}": lambda app=app, method=method, sent=sent: uvloop.run(_seconds(app, method, *sent))  # type: ignore[misc]
        for method, sent in requests.items()
        for name, app in apps.items()
    }
    seen = in_turns(cells, rounds=ground.effort.rounds * 4)
    table = Table("(p) processor time of a request; ratio: of ours, the higher the better", ("", "us", "ratio"))
    for cell, values in seen.items():
        ours = seen[f"{cell.partition(' ')[0]} ours"]
        table.add(cell, middle(values) * 1e6, middle([mine / its for mine, its in zip(ours, values, strict=True)]))
    return Result("framework", [table], [], raw=dict(seen))


async def _seconds(app: Asgi, method: str, path: str, body: bytes) -> float:
    headers = [(b"host", b"127.0.0.1"), (b"api-key", b"bench")]
    if body:
        headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    base = {"type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(), "query_string": b""}
    base |= {"scheme": "http", "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1), "root_path": ""}

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        assert message.get("status", 200) in (200, 201), message

    since = time.process_time()
    for _ in range(_REQUESTS):
        await app({**base, "headers": list(headers)}, receive, send)
    return (time.process_time() - since) / _REQUESTS

"""The HTTP framework alone, without socket and database: the product's, FastAPI, and FastAPI with the same checks in its hooks.

*Hooks*: routes are `APIRoute`s whose `get_route_handler` runs our checks and binding, a router finds them in our trie, and there is
no middleware. What remains of FastAPI are its two `__call__`s, its request and response classes and its exit stacks.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import datetime
from typing import Any
from uuid import uuid4

import fastapi
import uvloop
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from prometheus_client import CollectorRegistry

from api.http.app import Application, build
from api.http.auth import Caller
from api.http.endpoint import Conventions, Endpoint
from api.http.metrics import RequestMetrics
from api.http.model import Wire
from api.http.path_trie import PathTrie
from api.http.request import Request
from api.http.response import Response
from api.http.router import Router, RouteSpec
from api.http.surface import Surface
from bench import schedule, trivial
from bench.ground import Ground, in_turns
from bench.report import Result, Table, Target, middle

Asgi = Callable[[Any, Any, Any], Awaitable[None]]
_ROLES = frozenset({"operator"})
_CALLER = Caller("bench", _ROLES)
_REQUESTS = 2_000


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


router = Router("/x", surface=Surface("bench"))


@router.post("/echo", _ROLES, response_model=Posted, status=201)
async def echo(request: Request, body: Posted) -> Response:
    """Return the body and an id."""
    return Response(201, {"id": str(uuid4()), **body.__dict__})


@router.get("/{id}", _ROLES)
async def by_id(request: Request, id: int) -> Response:
    """Return the id."""
    return Response(200, {"id": id})


async def _authenticate(key: str) -> Caller:
    return _CALLER


class _NoLog:
    def wants(self, method: str, status: int, *, routine: bool) -> bool:
        return False

    def add(self, request: Request, *, status: int, seconds: float) -> None: ...

    def flush(self) -> None: ...


def _ours() -> Application:
    conventions, fallback = Conventions(_authenticate), router.surface
    return build(
        [router],
        {},
        conventions=conventions,
        fallback=fallback,
        registry=CollectorRegistry(),
        request_log=_NoLog(),
        title="bench",
        version="0",
    )


class _HookedRoute(APIRoute):
    """A FastAPI route that serves a route of the product."""

    def __init__(self, spec: RouteSpec, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        super().__init__(spec.path, self._described, methods=[spec.method])

    @staticmethod
    async def _described() -> None: ...

    def get_route_handler(self) -> Callable[[fastapi.Request], Any]:
        async def handle(plain: fastapi.Request) -> fastapi.Response:
            scope, endpoint = plain.scope, self._endpoint
            request = Request(scope, dict(scope["headers"]), path=endpoint.path)
            response = await endpoint.respond(request, plain.receive, values=scope["values"])
            given = {name.decode(): value.decode() for name, value in response.header_pairs()}
            return fastapi.Response(response.payload(), response.status, {**given, "x-transaction-id": request.transaction_id})

        return handle


class _TrieRouter(APIRouter):
    """A router that looks a path up in a trie instead of trying one route after another."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: PathTrie[dict[str, APIRoute]] = PathTrie()

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        leaf, scope["values"] = self.paths.find(scope["raw_path"])
        assert leaf is not None
        await leaf[scope["method"]].app(scope, receive, send)


class _Bare(FastAPI):
    def build_middleware_stack(self) -> Asgi:
        return self.router


def _hooks() -> FastAPI:
    app = _Bare(openapi_url=None, telemetry={"tracing": False, "metrics": False, "logs": False})
    routes = app.router = _TrieRouter()
    metrics, conventions = RequestMetrics(CollectorRegistry(), prefix="bench"), Conventions(_authenticate)
    for spec in router.specs:
        endpoint = Endpoint(spec, {}, conventions=conventions, meter=metrics.meter("bench", spec.method, route=spec.path))
        routes.paths.add(spec.path, {})[spec.method] = _HookedRoute(spec, endpoint)
    return app


def _plain() -> FastAPI:
    app = FastAPI(openapi_url=None)
    app.include_router(trivial.application().router, prefix="/x")

    @app.get("/x/{id}")
    async def by_id(id: int) -> dict[str, int]:
        return {"id": id}

    return app


def framework(ground: Ground) -> Result:
    """(p) one request through the framework alone: the product's, FastAPI with the same checks in its hooks, FastAPI."""
    body = schedule.post_bodies(1)[0].encode()
    apps: dict[str, Asgi] = {"ours": _ours(), "hooks": _hooks(), "FastAPI": _plain()}
    requests = {"GET": ("/x/4711", b""), "POST": ("/x/echo", body)}
    cells: dict[str, Callable[[], float]] = {
        f"{method} {name}": lambda app=app, method=method, sent=sent: uvloop.run(_seconds(app, method, *sent))  # type: ignore[misc]
        for method, sent in requests.items()
        for name, app in apps.items()
    }
    seen = in_turns(cells, rounds=ground.effort.rounds * 4)
    table = Table("(p) processor time of a request; ratio: of ours, the higher the better", ("", "us", "ratio"))
    ratios = {}
    for cell, values in seen.items():
        ours = seen[f"{cell.partition(' ')[0]} ours"]
        ratios[cell] = middle([mine / its for mine, its in zip(ours, values, strict=True)])
        table.add(cell, middle(values) * 1e6, ratios[cell])
    targets = [Target(f"{method}: FastAPI's hooks, of ours", ratios[f"{method} hooks"], 0.9) for method in requests]
    return Result("framework", [table], targets, raw=dict(seen))


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

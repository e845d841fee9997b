"""What FastAPI's manual says of an application, on one of ours with the routes of the toy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, BackgroundTasks, Cookie, Depends, FastAPI, Form, Header, HTTPException, Query, Security
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.security import SecurityScopes
from fastapi.testclient import TestClient
from pydantic import BaseModel
from starlette import requests, responses

from api.http.request import Caller
from api.http.routing import OPEN, Service, authorized, provider
from api.kernel.auth import READ, WRITE
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from tests.api.http.toy import ID, SECRET, Shelf, Toy

KEY = {"API-KEY": SECRET}
STEPS: list[str] = []


async def page(size: int = 20) -> int:
    return size * 2


def doubled(page: Annotated[int, Depends(page)]) -> int:
    return page * 2


async def opened() -> AsyncIterator[str]:
    STEPS.append("opened")
    try:
        yield "file"
    except LookupError:
        STEPS.append("failed")
        raise
    finally:
        STEPS.append("closed")


async def names(scopes: SecurityScopes) -> list[str]:
    return scopes.scopes


async def real_name() -> str:
    return "real"


@pytest.fixture
def routes(toy: Toy) -> APIRouter:
    """A router whose routes the application gets when the first request comes."""
    return APIRouter(prefix="/api/made", tags=["Made"], route_class=MediaRoute)


@pytest.fixture
def client(toy: Toy) -> TestClient:
    return TestClient(toy.app, headers=KEY, raise_server_exceptions=False)


def test_an_application_is_a_fastapi(toy: Toy) -> None:
    assert isinstance(toy.app, FastAPI)


def test_depends_with_dependencies_of_its_own(toy: Toy, routes: APIRouter, client: TestClient) -> None:
    @routes.get("/", dependencies=[READ])
    async def made(twice: Annotated[int, Depends(doubled)], shelf: Service[Shelf]) -> dict[str, int]:
        return {"twice": twice, "version": shelf.version}

    toy.app.include_router(routes)
    assert client.get("/api/made/", params={"SIZE": 3}).json() == {"twice": 12, "version": 5}
    assert client.get("/api/made?size=x").json()["errors"] == [{"field": "size", "message": "must be a whole number"}]
    assert client.get("/api/made?size=x", headers={"API-KEY": "wrong"}).status_code == 401


def test_a_dependency_with_yield_ends_after_the_response(toy: Toy, routes: APIRouter, client: TestClient) -> None:
    STEPS.clear()

    @routes.get("/{name}", dependencies=[READ])
    async def made(request: Request, name: str, file: Annotated[str, Depends(opened)]) -> dict[str, str]:
        STEPS.append("used")
        if name == "broken":
            raise LookupError
        return {"file": file, "by": request.caller.name}

    toy.app.include_router(routes)
    assert client.get("/api/made/a").json() == {"file": "file", "by": "admin"}
    assert client.get("/api/made/broken").status_code == 500
    assert STEPS == ["opened", "used", "closed", "opened", "used", "failed", "closed"]


def test_security_names_the_roles_and_gives_the_caller(toy: Toy, routes: APIRouter, client: TestClient) -> None:
    @routes.get("/caller", dependencies=[READ])
    async def made(
        caller: Annotated[Caller, Security(authorized, scopes=["admin"])],
        asked: Annotated[list[str], Security(names, scopes=["a"])],
    ) -> dict[str, Any]:
        return {"caller": caller.name, "scopes": asked}

    toy.app.include_router(routes)
    assert client.get("/api/made/caller").json() == {"caller": "admin", "scopes": ["a"]}
    assert client.get("/api/made/caller", headers={"API-KEY": "mlk_viewer"}).status_code == 403
    assert client.get("/api/made/caller", headers={"API-KEY": "wrong"}).status_code == 401


def test_headers_cookies_and_queries(toy: Toy, routes: APIRouter, client: TestClient) -> None:
    @routes.get("/values", dependencies=[OPEN])
    async def made(
        user_agent: Annotated[str, Header()], mark: Annotated[str, Cookie()], q: Annotated[list[str], Query(max_length=2)]
    ) -> dict[str, Any]:
        return {"agent": user_agent, "mark": mark, "q": q}

    toy.app.include_router(routes)
    client.cookies.set("mark", "m")
    shown = client.get("/api/made/values", params={"Q": ["a", "b"]}, headers={"User-Agent": "x"})
    assert shown.json() == {"agent": "x", "mark": "m", "q": ["a", "b"]}
    client.cookies.clear()
    refused = client.get("/api/made/values?q=1&q=2&q=3")
    assert (refused.status_code, refused.headers["content-type"]) == (400, "application/problem+json")
    assert {error["field"] for error in refused.json()["errors"]} == {"mark", "q"}


class Made(BaseModel):
    """A model that is not one of ours."""

    size: int


def test_bodies_forms_and_background_tasks(toy: Toy, routes: APIRouter, client: TestClient) -> None:
    done: list[int] = []

    @routes.post("/body", dependencies=[WRITE], status_code=201)
    async def add(body: Made, tasks: BackgroundTasks, x_mark: Annotated[str | None, Header()] = None) -> Made:
        tasks.add_task(done.append, body.size)
        return Made(size=body.size + 1)

    @routes.post("/form", dependencies=[WRITE])
    async def add_form(size: Annotated[int, Form()]) -> Made:
        return Made(size=size)

    toy.app.include_router(routes)
    assert client.post("/api/made/body", json={"size": 3}).json() == {"size": 4}
    assert done == [3]
    assert client.post("/api/made/form", data={"size": 5}).json() == {"size": 5}
    for content, content_type, status in (
        (b'{"size": "x"}', "application/json", 400),
        (b'{"size": 1', "application/json", 400),
        (b'{"size": 1}', "text/plain", 415),
        (b'{"size": "%s"}' % (b"x" * 2_000_000), "application/json", 413),
    ):
        answer = client.post("/api/made/body", content=content, headers={"content-type": content_type})
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert client.post("/api/made/body", content=b"{", headers={"API-KEY": "mlk_viewer"}).status_code == 403


def test_http_exceptions_are_problems(toy: Toy, routes: APIRouter, client: TestClient) -> None:
    @routes.get("/teapot", dependencies=[OPEN])
    async def made() -> None:
        raise HTTPException(418, "I brew tea.", headers={"X-Tea": "green"})

    toy.app.include_router(routes)
    answer = client.get("/api/made/teapot")
    assert (answer.status_code, answer.json()["detail"], answer.headers["x-tea"]) == (418, "I brew tea.", "green")


def test_exception_handlers(toy: Toy, client: TestClient) -> None:
    async def handle(request: requests.Request, error: Exception) -> responses.Response:
        return PlainTextResponse(f"{request.url.path}: {error}", 507)

    toy.app.add_exception_handler(RuntimeError, handle)
    answer = client.post("/api/thing/fail/", json={"with": "other"})
    assert (answer.status_code, answer.text) == (507, f"/api/thing/fail/: {SECRET}")
    assert answer.headers["x-transaction-id"]


def test_a_handler_for_every_exception(toy: Toy, client: TestClient) -> None:
    async def handle(request: requests.Request, error: Exception) -> responses.Response:
        return JSONResponse({"kind": type(error).__name__}, 500)

    toy.app.add_exception_handler(Exception, handle)
    assert client.post("/api/thing/fail/", json={"with": "other"}).json() == {"kind": "RuntimeError"}


def test_middleware(toy: Toy, client: TestClient) -> None:
    @toy.app.middleware("http")
    async def mark(request: requests.Request, call_next: Callable[[requests.Request], Awaitable[responses.Response]]) -> Any:
        response = await call_next(request)
        response.headers["x-mark"] = request.url.path
        return response

    answer = client.get(f"/api/thing/{ID}")
    assert (answer.status_code, answer.headers["x-mark"]) == (200, f"/api/thing/{ID}")
    assert client.get("/api/nothing").headers["x-mark"] == "/api/nothing"


def test_lifespan(toy: Toy) -> None:
    steps: list[str] = []

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        steps.append("begin")
        yield
        steps.append("end")

    toy.app.router.lifespan_context = lifespan
    with TestClient(toy.app, headers=KEY) as client:
        assert client.get("/api/thing/").status_code == 200
        assert steps == ["begin"]
    assert steps == ["begin", "end"]


def test_overrides_in_tests(toy: Toy, routes: APIRouter, client: TestClient) -> None:
    async def other() -> str:
        return "other"

    @routes.get("/name", dependencies=[OPEN])
    async def made(name: Annotated[str, Depends(real_name)]) -> dict[str, str]:
        return {"name": name}

    toy.app.include_router(routes)
    assert client.get("/api/made/name").json() == {"name": "real"}
    toy.app.dependency_overrides[real_name] = other
    assert client.get("/api/made/name").json() == {"name": "other"}


def test_overrides_reach_the_routes_of_the_product(toy: Toy, client: TestClient) -> None:
    shelf = Shelf(version=9)
    toy.app.dependency_overrides[provider(Shelf)] = lambda: shelf
    assert client.get(f"/api/thing/{ID}").headers["etag"] == '"9"'
    for sent in ({"json": {"TITLE": "a"}}, {"data": {"Title": "a", "labels": ["x", "y"]}}, {"files": {"title": (None, "a")}}):
        added = client.post("/api/thing/", **sent)
        assert (added.status_code, added.json()["sent"]["title"]) == (201, "a")
    assert (shelf.posts, toy.shelf.posts) == (3, 0)
    assert client.get("/api/thing/?PAGESIZE=7&states=1&STATES=2").json()["states"] == [1, 2]
    assert client.post("/api/thing/", data={"title": "a", "Title": "b"}).json()["errors"][0]["field"] == "Title"
    assert client.put(f"/api/thing/{ID}", json={"NAME": "x"}, headers={"If-Match": '"8"'}).status_code == 412
    toy.app.dependency_overrides.clear()
    assert client.get(f"/api/thing/{ID}").headers["etag"] == '"5"'


def test_a_route_of_the_application_itself(toy: Toy, client: TestClient) -> None:
    @toy.app.get("/hello/{who}")
    async def hello(who: str, loud: bool = False) -> dict[str, str]:
        return {"hello": who.upper() if loud else who}

    assert client.get("/hello/a%2Fb/?LOUD=true").json() == {"hello": "A/B"}
    assert client.get("/hello/a?loud=x").status_code == 400
    assert client.post("/hello/a").status_code == 405
    assert "/hello/{who}" in toy.app.openapi()["paths"]


def test_mounted_applications_and_routes_of_starlette(toy: Toy, client: TestClient) -> None:
    inner = FastAPI()

    @inner.get("/ping")
    async def ping() -> dict[str, bool]:
        return {"pong": True}

    toy.app.mount("/inner", inner)
    assert client.get("/inner/ping").json() == {"pong": True}
    assert client.get("/nothing").json()["status"] == 404


def test_dependencies_of_an_included_router(toy: Toy, routes: APIRouter, client: TestClient) -> None:
    async def refuse(x_pass: Annotated[str | None, Header()] = None) -> None:
        if x_pass != "yes":
            raise HTTPException(403, "No pass.")

    @routes.get("/inside", dependencies=[OPEN])
    async def made(request: Request) -> responses.Response:
        return PlainTextResponse("in")

    toy.app.include_router(routes, prefix="/v2", dependencies=[Depends(refuse)])
    assert client.get("/v2/api/made/inside").json()["detail"] == "No pass."
    assert client.get("/v2/api/made/inside", headers={"X-Pass": "yes"}).text == "in"

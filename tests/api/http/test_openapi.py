"""The description says what the server does."""

from __future__ import annotations

import re
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Body
from pydantic import ConfigDict, Field

from api.http.openapi import describe
from api.http.request import Request
from api.http.response import JSON_TYPE, SCRIPT, STYLE, Response
from api.http.routing import Route, rules
from api.http.surface import Surface
from api.kernel.auth import READ, WRITE
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Wire
from tests.api.http.toy import Toy, provider, things


@pytest.fixture
async def document(toy: Toy) -> dict[str, Any]:
    async with toy.client(None) as http:
        answer = await http.get("/openapi.json")
    described: dict[str, Any] = answer.json()
    return described


def test_every_declared_route_is_there(document: dict[str, Any]) -> None:
    described = {(method, path) for path, item in document["paths"].items() for method in item}
    declared = {(spec.method.lower(), spec.path) for spec in (*things.routes, *provider.routes) if isinstance(spec, Route)}
    assert described == declared


def test_nothing_promises_a_422(document: dict[str, Any]) -> None:
    for item in document["paths"].values():
        for operation in item.values():
            assert "422" not in operation["responses"]
            assert "400" in operation["responses"]
    assert not {"HTTPValidationError", "ValidationError"} & set(document["components"]["schemas"])


def test_errors_are_problems_and_204_is_where_declared(document: dict[str, Any]) -> None:
    responses = document["paths"]["/api/thing/{thingId}"]["get"]["responses"]
    reference = {"$ref": "#/components/schemas/Problem"}
    assert responses["401"]["content"] == {"application/problem+json": {"schema": reference}}
    assert "content" not in responses["204"]
    assert "404" not in responses
    assert "FieldProblem" in document["components"]["schemas"]
    deleted = document["paths"]["/api/thing/{id}"]["delete"]["responses"]
    assert "content" not in deleted["204"]
    assert "200" not in deleted


def test_bodies_queries_and_keys_are_described(document: dict[str, Any]) -> None:
    post = document["paths"]["/api/thing/"]["post"]
    assert set(post["requestBody"]["content"]) == {
        "application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    }
    assert {"$ref": "#/components/parameters/Idempotency-Key"} in post["parameters"]
    assert post["security"] == [{"API-KEY": []}, {"session": []}]
    assert (post["summary"], post["description"]) == ("Adds a thing.", "And says so at length.")
    names = {parameter["name"] for parameter in document["paths"]["/api/thing/"]["get"]["parameters"] if "name" in parameter}
    assert names == {"pageSize", "search", "states", "deleted"}
    assert document["paths"]["/api/thing/fail/"]["post"]["security"] == []
    assert document["components"]["securitySchemes"]["API-KEY"]["name"] == "API-KEY"
    speke = document["paths"]["/{client_name}/speke"]["post"]
    assert set(speke["requestBody"]["content"]) == {"application/xml", "text/xml"}
    assert set(speke["responses"]["200"]["content"]) == {"application/xml"}
    assert set(speke["responses"]["400"]["content"]) == {"text/plain"}


def _described(*routers: APIRouter) -> dict[str, Any]:
    return describe(routers, title="toy", version="0")


class Sized(Wire):
    """A body with examples at its fields."""

    width: int = Field(examples=[3])
    note: str | None = None


class Named(Wire):
    """A body with an example as a whole."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Hall", "note": None}]})
    name: str
    note: str | None


def test_an_example_comes_from_the_route_the_model_or_its_fields() -> None:
    router = APIRouter(prefix="/api/shelf", tags=["shelf"], route_class=MediaRoute)

    @router.post("/sized/", dependencies=[WRITE])
    async def add_sized(request: Request, body: Sized) -> Response:
        return Response()

    @router.post("/named/", dependencies=[WRITE])
    async def add_named(request: Request, body: Annotated[list[Named], Body()]) -> Response:
        return Response()

    @router.post("/own/", dependencies=[WRITE])
    @rules(example={"name": "Studio"})
    async def add_own(request: Request, body: Named) -> Response:
        return Response()

    paths = _described(router)["paths"]
    shown = [
        paths[f"/api/shelf/{path}/"]["post"]["requestBody"]["content"][JSON_TYPE]["example"] for path in ("sized", "named", "own")
    ]
    assert shown == [{"width": 3}, [{"name": "Hall", "note": None}], {"name": "Studio"}]


def test_two_operations_of_one_name_are_refused() -> None:
    router = APIRouter(prefix="/api/shelf", tags=["shelf"], route_class=MediaRoute)
    for path in ("/a/", "/b/"):

        @router.get(path, dependencies=[READ])
        async def get_shelf(request: Request) -> Response:
            return Response()

    with pytest.raises(ValueError, match="same name"):
        _described(router)


def test_two_models_of_one_name_are_refused() -> None:
    router = APIRouter(prefix="/api/shelf", tags=["shelf"], route_class=MediaRoute)
    for path, name in (("/a/", "Shelf"), ("/b/", "ShelfWire")):

        @router.get(
            path, dependencies=[READ], response_model=type(name, (Wire,), {"__annotations__": {"id": int}}), name=f"get_{name}"
        )
        async def get_shelf(request: Request) -> Response:
            return Response()

    with pytest.raises(ValueError, match="same name"):
        _described(router)


def test_surfaces_and_routes_have_errors_of_their_own() -> None:
    class ShelfRoute(Route):
        surface = Surface("shelf", never=frozenset({404}))

    router = APIRouter(prefix="/shelf", route_class=ShelfRoute)

    @router.get("/{id}", dependencies=[READ])
    @rules(errors={410: "Gone", 422: "Unfit"})
    async def get_shelf(request: Request, id: int) -> Response:
        return Response()

    responses = _described(router)["paths"]["/shelf/{id}"]["get"]["responses"]
    assert set(responses) == {"200", "304", "400", "401", "403", "410", "422", "503", "default"}


async def test_docs_are_open_and_come_from_this_server_alone(toy: Toy) -> None:
    async with toy.client(None) as http:
        page = await http.get("/docs/")
        assert page.headers["content-type"].startswith("text/html")
        addresses = re.findall(r'(?:src|href)="([^"]+)"', page.text)
        assert [address for address in addresses if not address.startswith(("/docs/", "/openapi.json", "data:"))] == []
        assert "://" not in page.text
        files = [await http.get(address) for address in addresses if address.startswith("/docs/")]
        assert [file.headers["content-type"] for file in files] == [STYLE, SCRIPT, SCRIPT]
        for answer in (page, *files):
            assert answer.status_code == 200
            policy = answer.headers["content-security-policy"].split("; ")
            assert {"default-src 'none'", "script-src 'self'", "connect-src 'self'"} <= set(policy)
            assert "://" not in answer.headers["content-security-policy"]
        start = files[-1].text
    assert '"/openapi.json"' in start
    assert "://" not in start
    assert "validatorUrl: null" in start


async def test_docs_need_no_inline_script(toy: Toy) -> None:
    async with toy.client(None) as http:
        page = await http.get("/docs")
    assert re.findall(r"<script(?![^>]*src=)|\son\w+=", page.text) == []

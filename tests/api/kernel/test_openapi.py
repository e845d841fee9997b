"""The description says what the server does."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.api.kernel.toy import Toy, provider, things


@pytest.fixture
async def document(toy: Toy) -> dict[str, Any]:
    async with toy.client(None) as http:
        answer = await http.get("/openapi.json")
    described: dict[str, Any] = answer.json()
    return described


def test_every_declared_route_is_there(document: dict[str, Any]) -> None:
    described = {(method, path) for path, item in document["paths"].items() for method in item}
    declared = {(one.method.lower(), one.path) for one in (*things.declarations, *provider.declarations)}
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
    assert post["security"] == [{"API-KEY": []}]
    assert (post["summary"], post["description"]) == ("Adds a thing.", "And says so at length.")
    names = {one["name"] for one in document["paths"]["/api/thing/"]["get"]["parameters"] if "name" in one}
    assert names == {"pageSize", "search", "states", "deleted"}
    assert "security" not in document["paths"]["/api/thing/fail/"]["post"]
    assert document["components"]["securitySchemes"]["API-KEY"]["name"] == "API-KEY"
    speke = document["paths"]["/{client_name}/speke"]["post"]
    assert set(speke["requestBody"]["content"]) == {"application/xml", "text/xml"}
    assert set(speke["responses"]["200"]["content"]) == {"application/xml"}
    assert set(speke["responses"]["400"]["content"]) == {"text/plain"}


async def test_docs_are_open(toy: Toy) -> None:
    async with toy.client(None) as http:
        answer: httpx.Response = await http.get("/docs/")
    assert answer.headers["content-type"].startswith("text/html")
    assert "/openapi.json" in answer.text

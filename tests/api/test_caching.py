"""The caching headers of all routes of the product."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from api.http.app import Application
from api.http.headers import CREDENTIALS
from api.http.routing import Route
from api.wiring.core import Core
from tests.api.test_permissions import ask, declared
from tests.support.application import introduce

NOT_STORED = ("/api/client/", "/api/audit/", "/api/log/", "/api/webhook/", "/api/webook/", "/api/contentkey/", "/engine/")
"""Where these paths begin nothing is kept, not even by the browser of the caller."""
FOR_EVER = "/api/audit/tile/"
CREDENTIAL_NAMES = frozenset(CREDENTIALS.decode().split(", "))


@pytest.fixture
async def keyed(http: httpx.AsyncClient, inner: Core, application: Application) -> AsyncIterator[tuple[httpx.AsyncClient, str]]:
    application.drain()  # a stream that never ends does so at once
    key = await introduce(inner, "the-admin", "admin")
    async with httpx.AsyncClient(transport=http._transport, base_url="http://media.test") as caller:
        yield caller, key


def directives(answer: httpx.Response) -> frozenset[str]:
    return frozenset(answer.headers.get("cache-control", "").split(", ")) - {""}


def judge(name: str, route: Route, answer: httpx.Response) -> None:
    output = directives(answer)
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"], name
    assert len(answer.headers.get_list("cache-control")) <= 1, name
    if answer.status_code >= 400:
        assert "no-store" in output, (name, answer.status_code)
    elif f"{route.documented_path}/".startswith(NOT_STORED):
        assert "no-store" in output or ("private" in output and route.documented_path.startswith(FOR_EVER)), name
    elif route.permission.roles:
        assert "no-store" in output or "private" in output, name
        if "no-store" not in output:
            assert set(answer.headers["vary"].split(", ")) >= CREDENTIAL_NAMES, name


async def test_no_cache_gives_what_needs_a_key_to_others(keyed: tuple[httpx.AsyncClient, str]) -> None:
    caller, key = keyed
    answered = 0
    for name, route in declared().items():
        for headers in ({"API-KEY": key, "client": "the-admin"}, {}, {"API-KEY": "wrong"}):
            answer = await ask(caller, name, headers)
            judge(name, route, answer)
            answered += bool(route.permission.roles) and answer.status_code == 200
    assert answered > 60, "reads with a body"


async def test_methods_that_no_route_declares_and_paths_that_do_not_exist(keyed: tuple[httpx.AsyncClient, str]) -> None:
    caller, key = keyed
    for method, path in (("OPTIONS", "/media/a/b.mp4"), ("OPTIONS", "/api/event/"), ("HEAD", "/api/event/"), ("GET", "/api/none/")):
        answer = await caller.request(method, path, headers={"API-KEY": key})
        assert answer.headers["x-content-type-options"] == "nosniff", (method, path)
    for path in ("/docs", "/openapi.json", "/console/", "/livez", "/metrics"):
        assert (await caller.get(path)).headers.get_list("x-content-type-options") == ["nosniff"], path


async def test_a_response_that_has_not_changed_says_so_to_its_caller_alone(keyed: tuple[httpx.AsyncClient, str]) -> None:
    caller, key = keyed
    headers = {"API-KEY": key}
    added = await caller.post("/api/room/", json={"name": "hall"}, headers=headers)
    path = added.headers["location"]
    first = await caller.get(path, headers=headers)
    again = await caller.get(path, headers={**headers, "If-None-Match": first.headers["etag"]})
    assert (first.status_code, again.status_code) == (200, 304)
    for answer in (first, again):
        assert answer.headers["cache-control"] == "private, no-cache"
        assert set(answer.headers["vary"].split(", ")) >= CREDENTIAL_NAMES
        assert answer.headers["x-content-type-options"] == "nosniff"

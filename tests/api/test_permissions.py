"""The permission of each route, stated independently of its declaration, so that a declaration cannot change it unnoticed."""

from __future__ import annotations

from functools import cache

import httpx

from api.engine.surface import ENGINE
from api.http.app import Application
from api.http.routing import Route, routes_of
from api.speke.surface import KEY_PROVIDER
from api.wiring.core import Core
from api.wiring.services import ROUTES
from domain.client.roles import Role
from tests.api.asking import UNKNOWN, assert_problem, engine_error, last
from tests.support.application import introduce

OPEN = "open"
READ = frozenset({"viewer", "operator", "auditor", "admin"})
WRITE = frozenset({"operator", "admin"})
KEYS = frozenset({"keys", "operator", "admin"})
AUDIT = frozenset({"auditor", "admin"})
ADMIN = frozenset({"admin"})
ROLES = tuple(role.value for role in Role)

EXCEPTIONS: dict[str, str | frozenset[str]] = {
    "GET /api/compose/clone/{sourceEventId}": WRITE,
    "GET /api/category/customproperty/clone/": WRITE,
    "GET /api/chapterpoint/customproperty/clone/": WRITE,
    "GET /engine/jobs/counts": OPEN,
    "GET /engine/jobs/{job_id}/tasks": OPEN,
    "GET /": OPEN,
    "GET /console/": OPEN,
    "GET /console/{path}": OPEN,
    "POST /console/session": OPEN,
    "GET /console/session": OPEN,
    "DELETE /console/session": OPEN,
    "POST /api/provision/callback/{template}/{infrastructure}": OPEN,
    "PUT /api/quiet/": ADMIN,
    "DELETE /api/consumer/{name}": ADMIN,
    "POST /api/client/": ADMIN,
    "GET /api/client/": ADMIN,
    "GET /api/client/{name}": ADMIN,
    "PUT /api/client/{name}": ADMIN,
    "DELETE /api/client/{name}": ADMIN,
    "POST /api/client/{name}/keys/": ADMIN,
    "DELETE /api/client/{name}/keys/{keyId}": ADMIN,
    "GET /api/client/{name}/drm/": ADMIN,
    "PUT /api/client/{name}/drm/": ADMIN,
    "GET /api/log/useraudit/": AUDIT,
    "GET /api/log/usermanagement/": AUDIT,
    "GET /api/audit/events/": AUDIT,
    "GET /api/audit/verify": AUDIT,
    "GET /api/audit/{aggregate}/{id}/diff": AUDIT,
    "POST /api/audit/redact": ADMIN,
    "GET /api/audit/redact/{id}": AUDIT,
    "GET /api/audit/checkpoint": AUDIT,
    "GET /api/audit/checkpoints/": AUDIT,
    "GET /api/audit/integrity": AUDIT,
    "GET /api/audit/kinds": AUDIT,
    "GET /api/audit/verifier": AUDIT,
    "GET /api/audit/proof/inclusion": AUDIT,
    "GET /api/audit/proof/consistency": AUDIT,
    "GET /api/audit/tile/{level}/{place}": AUDIT,
    "GET /api/audit/export": AUDIT,
    "GET /api/audit/{aggregate}/{id}/": AUDIT,
    "GET /api/audit/{aggregate}/{id}/state": AUDIT,
    "POST /{client_name}/speke": KEYS,
    "GET /{client_name}/speke/heartbeat": KEYS,
    "GET /engine/": OPEN,
    "GET /engine/jobs/{job_id}": OPEN,
    "GET /engine/jobs": OPEN,
    "GET /engine/tasks": OPEN,
    "GET /engine/logs/{job_id}": OPEN,
    "GET /engine/logs/{job_id}/stream": OPEN,
    "GET /engine/health": WRITE,
    "GET /engine/dashboard": OPEN,
    "GET /engine/dashboard/stream": OPEN,
    "GET /engine/dashboard.html": OPEN,
    "GET /engine/settings": WRITE,
    "GET /engine/schedules": WRITE,
    "GET /livez": OPEN,
    "GET /readyz": OPEN,
    "GET /media/{contentId}/{file}": OPEN,
    "GET /origin/live/{name}/{file}": OPEN,
    "PUT /origin/live/{name}/{file}": OPEN,
    "POST /origin/live/{name}/{file}": OPEN,
    "DELETE /origin/live/{name}/{file}": OPEN,
    "DELETE /origin/live/{name}": OPEN,
    "GET /metrics": OPEN,
    "GET /asyncapi.json": OPEN,
}
"""The permissions of routes that differ from the rule: a GET needs READ, and any other method WRITE."""
UNDECLARED_OPEN = ("/docs", "/openapi.json")
VALUES = {
    "id": UNKNOWN,
    "contentId": UNKNOWN,
    "referenceid": "r",
    "name": "nobody",
    "keyId": "k",
    "aggregate": "event",
    "eventId": UNKNOWN,
    "channelId": UNKNOWN,
    "destinationId": UNKNOWN,
    "transactionId": UNKNOWN,
    "itemId": UNKNOWN,
    "deliveryId": UNKNOWN,
    "text": "nothing",
    "job_id": "987654",
    "file": "a.mp4",
    "path": "assets/none.js",
}


LEADING_ELSEWHERE = {"GET /": "/console/", "GET /engine/dashboard.html": "/console/jobs"}


@cache
def declared() -> dict[str, Route]:
    return {f"{spec.method} {spec.documented_path}": spec for spec in routes_of(ROUTES)}


def expected(name: str) -> str | frozenset[str]:
    return EXCEPTIONS.get(name, READ if name.startswith("GET ") else WRITE)


def test_every_exception_is_a_route_that_differs_from_the_rule() -> None:
    assert sorted(EXCEPTIONS.keys() - declared().keys()) == []
    assert [name for name, roles in EXCEPTIONS.items() if roles == (READ if name.startswith("GET ") else WRITE)] == []


def test_every_declaration_agrees_with_the_rule_and_its_exceptions() -> None:
    for name, declaration in declared().items():
        output = OPEN if not declaration.permission.roles else frozenset(map(str, declaration.permission.roles))
        assert output == expected(name), name


async def ask(caller: httpx.AsyncClient, name: str, headers: dict[str, str]) -> httpx.Response:
    """A request that changes nothing: what is not refused for who asks is refused for what is asked, or is a read."""
    method, template = name.split(" ")
    for parameter, value in {**VALUES, "client_name": headers.get("client", "the-admin")}.items():
        template = template.replace(f"{{{parameter}}}", value)
    content_type = "application/json-patch+json" if method == "PATCH" else "application/json"
    body = b"" if method == "GET" else b"["
    return await caller.request(method, template, headers={"content-type": content_type, **headers}, content=body)


def answered(answer: httpx.Response, name: str) -> None:
    """Check that the call is answered, whatever the key is. Jobs, files and live streams in the call do not exist."""
    if "{job_id}" in name:
        assert engine_error(answer, 400)
    elif "/provision/callback/" in name:
        assert_problem(answer, 400)
    elif name.endswith(" /console/session"):
        assert answer.status_code == {"POST": 400, "GET": 401, "DELETE": 204}[name.split(" ")[0]]
    elif name in LEADING_ELSEWHERE:
        assert (answer.status_code, answer.headers["location"]) == (302, LEADING_ELSEWHERE[name])
    elif name == "GET /console/":
        assert answer.status_code in (200, 404), "404 where the console is not built"
    elif "{path}" in name:
        assert answer.status_code == 404, name
    elif "{file}" in name or " /origin/" in name:
        assert_problem(answer, 404)
    else:
        assert answer.status_code == 200, name


def refused(answer: httpx.Response, status: int, name: str) -> None:
    """Check that the call is refused in the form of the route's surface."""
    if declared()[name].surface is KEY_PROVIDER:
        assert answer.status_code == status, name
        assert answer.headers["x-error-code"] == f"SPEKE-{status}0"
    elif declared()[name].surface is ENGINE:
        assert engine_error(answer, status)
    else:
        assert_problem(answer, status)


async def test_every_role_gets_what_the_rule_and_its_exceptions_allow(
    http: httpx.AsyncClient, inner: Core, application: Application
) -> None:
    application.drain()  # a stream that never ends does so at once
    keys = {role: await introduce(inner, f"the-{role}", role) for role in ROLES}
    before = await last(inner)
    async with httpx.AsyncClient(transport=http._transport, base_url="http://media.test") as caller:
        for name in declared():
            allowed = expected(name)
            for headers in ({}, {"API-KEY": "wrong"}, {"API-KEY": keys["admin"], "client": "the-viewer"}):
                answer = await ask(caller, name, headers)
                if allowed == OPEN:
                    answered(answer, name)
                else:
                    refused(answer, 401, name)
            for role, key in keys.items():
                answer = await ask(caller, name, {"API-KEY": key, "client": f"the-{role}"})
                if allowed == OPEN:
                    answered(answer, name)
                elif role in allowed:
                    assert answer.status_code in (200, 204, 400, 404, 415), (name, role)
                else:
                    refused(answer, 403, name)
    assert await last(inner) == before


async def test_a_client_with_several_roles_may_do_what_any_of_them_may(http: httpx.AsyncClient, inner: Core) -> None:
    headers = {"API-KEY": await introduce(inner, "both", "keys", "auditor")}
    assert (await http.get("/api/event/", headers=headers)).status_code == 200
    assert (await http.get("/api/audit/events/", headers=headers)).status_code == 200
    assert_problem(await http.post("/api/event/", json={}, headers=headers), 403)
    assert_problem(await http.get("/api/client/", headers=headers), 403)


async def test_the_documentation_needs_no_key(http: httpx.AsyncClient) -> None:
    async with httpx.AsyncClient(transport=http._transport, base_url="http://media.test") as nobody:
        for path in UNDECLARED_OPEN:
            assert (await nobody.get(path)).status_code == 200


async def test_a_refusal_reveals_nothing_about_the_request(http: httpx.AsyncClient, inner: Core) -> None:
    viewer = {"API-KEY": await introduce(inner, "viewer", "viewer")}
    huge = b"x" * 2_000_000
    for headers, status in (({"API-KEY": "wrong"}, 401), (viewer, 403)):
        for content_type in ("application/json", "text/plain"):
            sent = {**headers, "content-type": content_type, "X-Transaction-ID": "x" * 200, "If-Match": '"9"'}
            answer = await http.post("/api/event/", content=huge, headers=sent)
            assert_problem(answer, status)

"""The permission of each route, written out, so that a declaration cannot change it unnoticed."""

from __future__ import annotations

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

EXPECTED: dict[str, str | frozenset[str]] = {
    "POST /api/event/": WRITE,
    "PATCH /api/event/{id}": WRITE,
    "PATCH /api/event/reference/{referenceid}": WRITE,
    "POST /api/event/stream/dvrwindowlength/{id}": WRITE,
    "POST /api/event/flow/add/": WRITE,
    "PUT /api/event/forcestop/{id}": WRITE,
    "PUT /api/event/state/{id}": WRITE,
    "PUT /api/event/flow/protection/{contentId}": WRITE,
    "DELETE /api/event/{id}": WRITE,
    "PUT /api/event/restore/{id}": WRITE,
    "GET /api/event/": READ,
    "GET /api/event/deleted/": READ,
    "GET /api/event/{id}": READ,
    "GET /api/event/reference": READ,
    "GET /api/event/external": READ,
    "GET /api/event/external/unique": READ,
    "PUT /api/vod/{id}/metadata": WRITE,
    "GET /api/vod/{id}/metadata": READ,
    "GET /api/vod/{id}/quality": READ,
    "POST /api/compose/": WRITE,
    "POST /api/compose/encoder/": WRITE,
    "PUT /api/compose/event/{eventId}": WRITE,
    "PUT /api/compose/encoder/event/{eventId}": WRITE,
    "PUT /api/compose/event/{eventId}/drm/": WRITE,
    "GET /api/compose/clone/{sourceEventId}": WRITE,
    "GET /api/compose/{eventId}": READ,
    "DELETE /api/compose/{eventId}": WRITE,
    "POST /api/room/": WRITE,
    "PUT /api/room/{id}": WRITE,
    "DELETE /api/room/{id}": WRITE,
    "GET /api/room/": READ,
    "GET /api/room/{id}": READ,
    "GET /api/room/reference": READ,
    "GET /api/room/{id}/events/": READ,
    "PUT /api/tag/": WRITE,
    "PUT /api/tag/event/{id}": WRITE,
    "DELETE /api/tag/{id}": WRITE,
    "GET /api/tag/{id}": READ,
    "GET /api/tag/exists/{text}": READ,
    "GET /api/tag/event/{id}": READ,
    "GET /api/tag/{id}/events/": READ,
    "GET /api/document/event/{id}": READ,
    "POST /api/eventtype/": WRITE,
    "PUT /api/eventtype/{id}": WRITE,
    "PUT /api/eventtype/event/{id}": WRITE,
    "DELETE /api/eventtype/{id}": WRITE,
    "GET /api/eventtype/": READ,
    "GET /api/eventtype/{id}": READ,
    "GET /api/eventtype/reference": READ,
    "GET /api/eventtype/{id}/events/": READ,
    "POST /api/category/": WRITE,
    "PUT /api/category/{id}": WRITE,
    "DELETE /api/category/{id}": WRITE,
    "GET /api/category/": READ,
    "GET /api/category/{id}": READ,
    "GET /api/category/{id}/events/": READ,
    "POST /api/chapterpoint/": WRITE,
    "DELETE /api/chapterpoint/{id}": WRITE,
    "GET /api/chapterpoint/{id}": READ,
    "GET /api/chapterpoint/event/{eventId}": READ,
    "GET /api/chapterpoint/customproperty/event/{eventId}": READ,
    "POST /api/asset/gif/": WRITE,
    "POST /api/asset/video/": WRITE,
    "POST /api/asset/image/": WRITE,
    "POST /api/asset/caption/": WRITE,
    "PUT /api/asset/sync/{eventId}": WRITE,
    "PUT /api/asset/{id}": WRITE,
    "GET /api/asset/": READ,
    "GET /api/asset/{id}": READ,
    "DELETE /api/asset/": WRITE,
    "DELETE /api/asset/{id}": WRITE,
    "POST /api/category/customproperty/": WRITE,
    "POST /api/category/customproperty/bulk/{id}": WRITE,
    "GET /api/category/customproperty/clone/": WRITE,
    "GET /api/category/customproperty/": READ,
    "GET /api/category/customproperty/{id}": READ,
    "DELETE /api/category/customproperty/{id}": WRITE,
    "DELETE /api/category/customproperty/": WRITE,
    "POST /api/chapterpoint/customproperty/": WRITE,
    "POST /api/chapterpoint/customproperty/bulk/{id}": WRITE,
    "GET /api/chapterpoint/customproperty/clone/": WRITE,
    "GET /api/chapterpoint/customproperty/": READ,
    "GET /api/chapterpoint/customproperty/{id}": READ,
    "DELETE /api/chapterpoint/customproperty/{id}": WRITE,
    "DELETE /api/chapterpoint/customproperty/": WRITE,
    "POST /api/playlist/": WRITE,
    "PUT /api/playlist/{id}": WRITE,
    "GET /api/playlist/": READ,
    "GET /api/playlist/{id}": READ,
    "POST /api/playlist/{id}/playlistItems/": WRITE,
    "GET /api/playlist/{id}/playlistItems/": READ,
    "GET /api/playlist/{id}/playlistItems/{itemId}": READ,
    "DELETE /api/playlist/{id}/playlistItems/{itemId}": WRITE,
    "POST /api/archiverstream/": WRITE,
    "PUT /api/archiverstream/{id}": WRITE,
    "DELETE /api/archiverstream/{id}": WRITE,
    "GET /api/archiverstream/": READ,
    "GET /api/archiverstream/{id}": READ,
    "POST /api/media/destination/": WRITE,
    "PUT /api/media/destination/active/{id}": WRITE,
    "PUT /api/media/destination/activate/{id}": WRITE,
    "PUT /api/media/destination/{id}": WRITE,
    "GET /api/media/destination/": READ,
    "GET /api/media/destination/{id}": READ,
    "DELETE /api/media/destination/{id}": WRITE,
    "POST /api/media/livepublication/": WRITE,
    "PUT /api/media/livepublication/recreate/": WRITE,
    "PUT /api/media/livepublication/start/": WRITE,
    "PUT /api/media/livepublication/stop/": WRITE,
    "PUT /api/media/livepublication/start/all/": WRITE,
    "PUT /api/media/livepublication/stop/all/": WRITE,
    "PUT /api/media/livepublication/publish/": WRITE,
    "PUT /api/media/livepublication/unpublish/": WRITE,
    "GET /api/media/livepublication/": READ,
    "GET /api/media/livepublication/transactionId/{transactionId}": READ,
    "GET /api/media/livepublication/contentId/{contentId}": READ,
    "GET /api/media/livepublication/statistics/{publicationId}": READ,
    "GET /api/media/livepublication/{id}": READ,
    "DELETE /api/media/livepublication/": WRITE,
    "POST /api/media/vodpublication/": WRITE,
    "GET /api/media/vodpublication/": READ,
    "GET /api/media/vodpublication/transactionId/{transactionId}": READ,
    "GET /api/media/vodpublication/content/{contentId}": READ,
    "GET /api/media/vodpublication/{id}": READ,
    "DELETE /api/media/vodpublications/{id}": WRITE,
    "DELETE /api/media/vodpublication/{id}": WRITE,
    "POST /api/vodpublications/": WRITE,
    "PUT /api/vodpublications/publish/": WRITE,
    "PUT /api/vodpublications/unpublish/": WRITE,
    "PUT /api/vodpublications/{id}": WRITE,
    "GET /api/vodpublications/": READ,
    "GET /api/vodpublications/transactionId/{transactionId}": READ,
    "GET /api/vodpublications/contentId/": READ,
    "GET /api/vodpublications/{id}": READ,
    "DELETE /api/vodpublications/all/{contentId}": WRITE,
    "DELETE /api/vodpublications/{id}": WRITE,
    "POST /api/media/destinationproperty/": WRITE,
    "GET /api/media/destinationproperty/all/{destinationId}": READ,
    "GET /api/media/destinationproperty/id/{id}": READ,
    "GET /api/media/destinationproperty/{destinationId}": READ,
    "DELETE /api/media/destinationproperty/all/{destinationId}": WRITE,
    "DELETE /api/media/destinationproperty/{destinationId}": WRITE,
    "POST /api/channel/": WRITE,
    "PUT /api/channel/{id}": WRITE,
    "DELETE /api/channel/{id}": WRITE,
    "GET /api/channel/": READ,
    "GET /api/channel/{id}": READ,
    "GET /api/channel/reference": READ,
    "POST /api/flow/": WRITE,
    "PUT /api/flow/{id}": WRITE,
    "DELETE /api/flow/{id}": WRITE,
    "GET /api/flow/": READ,
    "GET /api/flow/{id}": READ,
    "GET /api/flow/taskengines/{id}": READ,
    "POST /api/infrastructureprofile/": WRITE,
    "DELETE /api/infrastructureprofile/{id}": WRITE,
    "GET /api/infrastructureprofile/": READ,
    "GET /api/infrastructureprofile/{id}": READ,
    "GET /api/infrastructureprofile/reference/": READ,
    "GET /api/infrastructureprofile/resources/{id}": READ,
    "POST /api/provision/{eventId}": WRITE,
    "GET /api/webhook/health": READ,
    "GET /api/event/counts": READ,
    "GET /engine/jobs/counts": OPEN,
    "GET /engine/jobs/{job_id}/tasks": OPEN,
    "GET /engine/workflows": READ,
    "GET /engine/workflows/{name}": READ,
    "GET /": OPEN,
    "GET /console/": OPEN,
    "GET /console/{path}": OPEN,
    "POST /console/session": OPEN,
    "GET /console/session": OPEN,
    "DELETE /console/session": OPEN,
    "POST /api/provision/callback/{template}/{infrastructure}": OPEN,
    "GET /api/provision/{eventId}": READ,
    "GET /api/provision/resources/{eventId}": READ,
    "DELETE /api/provision/{eventId}": WRITE,
    "DELETE /api/provision/reset/{eventId}": WRITE,
    "GET /api/health/live/dynamic/stream/notprovisioned/": READ,
    "GET /api/health/live/dynamic/stream/notterminated/": READ,
    "GET /api/provision/compare/": READ,
    "GET /api/provision/compare/{channelId}": READ,
    "POST /api/webhook/": WRITE,
    "POST /api/webhook/event/": WRITE,
    "POST /api/webook/event/": WRITE,
    "PUT /api/webhook/{id}": WRITE,
    "PUT /api/webhook/{id}/event/": WRITE,
    "GET /api/webhook/": READ,
    "GET /api/webhook/event/{eventId}": READ,
    "GET /api/webhook/{id}": READ,
    "GET /api/webhook/{id}/event/": READ,
    "GET /api/webhook/callback/": READ,
    "GET /api/webhook/{id}/callback/": READ,
    "PUT /api/webhook/{id}/callback/": WRITE,
    "DELETE /api/webhook/{id}": WRITE,
    "POST /api/webhook/{id}/secret/": WRITE,
    "POST /api/webhook/notify/{eventId}": WRITE,
    "GET /api/webhook/deliveries/": READ,
    "POST /api/webhook/deliveries/resend/": WRITE,
    "GET /api/webhook/{id}/deliveries/": READ,
    "GET /api/webhook/{id}/deliveries/{deliveryId}": READ,
    "POST /api/webhook/{id}/deliveries/{deliveryId}/resend": WRITE,
    "POST /api/webhook/{id}/recover/": WRITE,
    "POST /api/webhook/{id}/test/": WRITE,
    "GET /api/changes/stream": READ,
    "GET /api/quiet/": READ,
    "PUT /api/quiet/": ADMIN,
    "GET /api/consumer/": READ,
    "GET /api/consumer/{name}/parked/": READ,
    "POST /api/consumer/{name}/parked/replay/": WRITE,
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
    "GET /api/contentkey/": READ,
    "POST /api/log/": WRITE,
    "POST /api/log/exception/": WRITE,
    "POST /api/log/loggable/": WRITE,
    "GET /api/log/": READ,
    "GET /api/log/event/{eventId}": READ,
    "GET /api/log/useraudit/": AUDIT,
    "GET /api/log/usermanagement/": AUDIT,
    "GET /api/log/{id}": READ,
    "GET /api/health/live/stream/notlive2vod/": READ,
    "GET /api/health/live/stream/notstarted/": READ,
    "GET /api/health/live/stream/notstopped/": READ,
    "GET /api/health/live/stream/": READ,
    "GET /api/health/live/stream/{channelId}": READ,
    "GET /api/health/live/session/event/{eventId}": READ,
    "GET /api/health/live/stream/event/{eventId}": READ,
    "GET /api/health/": READ,
    "GET /api/health/overview/": READ,
    "GET /api/health/version": READ,
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
    "POST /engine/job": WRITE,
    "PUT /engine/job/{job_id}": WRITE,
    "POST /engine/jobs/{job_id}/rerun": WRITE,
    "GET /engine/jobs/{job_id}": OPEN,
    "GET /engine/jobs": OPEN,
    "GET /engine/tasks": OPEN,
    "GET /engine/logs/{job_id}": OPEN,
    "GET /engine/logs/{job_id}/stream": OPEN,
    "GET /engine/health": WRITE,
    "GET /engine/dashboard": OPEN,
    "GET /engine/dashboard/stream": OPEN,
    "GET /engine/dashboard.html": OPEN,
    "POST /engine/settings": WRITE,
    "GET /engine/settings": WRITE,
    "GET /engine/schedules": WRITE,
    "PUT /engine/scheduler": WRITE,
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


def declared() -> dict[str, Route]:
    return {f"{spec.method} {spec.documented_path}": spec for spec in routes_of(ROUTES)}


def test_the_table_names_every_route_and_no_other() -> None:
    assert sorted(declared()) == sorted(EXPECTED)


def test_every_declaration_says_what_the_table_says() -> None:
    for name, declaration in declared().items():
        output = OPEN if not declaration.permission.roles else frozenset(map(str, declaration.permission.roles))
        assert output == EXPECTED[name], name


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


async def test_every_role_gets_what_the_table_says_from_every_route(
    http: httpx.AsyncClient, inner: Core, application: Application
) -> None:
    application.drain()  # a stream that never ends does so at once
    keys = {role: await introduce(inner, f"the-{role}", role) for role in ROLES}
    before = await last(inner)
    async with httpx.AsyncClient(transport=http._transport, base_url="http://media.test") as caller:
        for name, allowed in EXPECTED.items():
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


async def test_who_may_not_is_told_so_before_anything_about_the_request(http: httpx.AsyncClient, inner: Core) -> None:
    viewer = {"API-KEY": await introduce(inner, "viewer", "viewer")}
    huge = b"x" * 2_000_000
    for headers, status in (({"API-KEY": "wrong"}, 401), (viewer, 403)):
        for content_type in ("application/json", "text/plain"):
            sent = {**headers, "content-type": content_type, "X-Transaction-ID": "x" * 200, "If-Match": '"9"'}
            answer = await http.post("/api/event/", content=huge, headers=sent)
            assert_problem(answer, status)

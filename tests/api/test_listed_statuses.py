"""Every operation lists the statuses that it can give, and no other. That none is missing is compared in every test of the
product, in `tests/support/listed_statuses.py`; that each listed one can come is asked here, of each operation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import httpx
import pytest

from api.http.app import Application
from api.http.openapi import statuses
from api.http.routing import Route, routes_of
from api.kernel.wire import wire_names
from api.wiring.core import Core
from api.wiring.services import ROUTES
from tests.api.asking import UNKNOWN, add_profile, add_room, put_tag
from tests.api.media.owners import OWNERS
from tests.api.test_hostile_input import address, ids, wrapped
from tests.api.valid_bodies import CLIP, VALID
from tests.support.listed_statuses import LISTED, UnlistedStatus

__all__ = ["ids"]

SPECS = {
    f"{spec.method} {spec.documented_path}": spec
    for spec in routes_of(ROUTES)
    if spec.include_in_schema
    and not spec.documented_path.startswith("/origin/")  # for encoders and players, with tests of their own
}
NOWHERE = {
    "referenceid": "unknown",
    "name": "nobody",
    "keyId": "unknown",
    "aggregate": "event",
    "text": "unknown",
    "file": "unknown.mp4",
    "level": "0",
    "place": "000",
    "job_id": "987654",
    "log": "987654",
    "archiverstream": "987654",
    "client_name": "admin",
}
"""Names and numbers that nothing has. Ids are new ones."""
WITH_UNKNOWN: Mapping[str, dict[str, Any]] = {
    "POST /api/event/flow/add/": {**VALID["POST /api/event/flow/add/"], "id": UNKNOWN},
    "POST /api/chapterpoint/": {"eventId": UNKNOWN, "startTime": "00:00:00"},
    "POST /api/category/customproperty/": {"id": UNKNOWN},
    "POST /api/chapterpoint/customproperty/": {"id": UNKNOWN},
    "POST /api/media/destinationproperty/": {"id": UNKNOWN, "category": "a", "key": "b"},
    "PUT /api/vodpublications/publish/": {"id": UNKNOWN, "destinationId": UNKNOWN},
    "PUT /api/vodpublications/unpublish/": {"id": UNKNOWN, "destinationId": UNKNOWN},
    "POST /api/vodpublications/": {
        "publications": [{"contentId": "film", "destinationId": UNKNOWN, "publicationJson": "{}"}],
    },
    "POST /api/media/vodpublication/": {**VALID["POST /api/media/vodpublication/"], "eventId": UNKNOWN},
    "POST /api/media/livepublication/": {**VALID["POST /api/media/livepublication/"], "eventId": UNKNOWN},
    **{
        f"PUT /api/media/livepublication/{path}/": {"eventId": UNKNOWN, "publicationId": UNKNOWN, "destinationId": UNKNOWN}
        for path in ("recreate", "start", "stop", "publish", "unpublish")
    },
    "POST /api/infrastructureprofile/": {**VALID["POST /api/infrastructureprofile/"], "id": UNKNOWN},
    **{name: {**VALID[name], "eventId": UNKNOWN} for name in ("POST /api/asset/image/", "POST /api/asset/caption/")},
    **{name: {**VALID[name], "clip": {**CLIP, "eventId": UNKNOWN}} for name in ("POST /api/asset/gif/", "POST /api/asset/video/")},
    "POST /api/webhook/": {"id": UNKNOWN, "webhookUrl": "https://hooks.test/a"},
    **{f"POST /api/{path}/event/": {"eventId": UNKNOWN, "webhookUrl": "https://hooks.test/a"} for path in ("webhook", "webook")},
    **{name: {**VALID[name], "id": str(uuid4())} for name in ("POST /api/event/", "POST /api/flow/")},
    "PUT /api/tag/": {"id": str(uuid4()), "name": "new"},
    "POST /api/audit/redact": {"reason": "asked for", "aggregate": "room", "id": UNKNOWN},
}
"""Bodies that name what is not there. The last of them make it."""
NAMED_IN_QUERY = {"GET /api/audit/export": f"?aggregate=event&id={UNKNOWN}"}
"""Queries that name a resource that does not exist."""
_IDS = ("id", "contentId", "eventId", "channelId", "itemId", "deliveryId")
EACH = {
    "PUT /api/media/livepublication/start/all/",
    "PUT /api/media/livepublication/stop/all/",
    "DELETE /api/media/livepublication/",
}
"""Routes that process several entries: they answer 200 with a result for each entry."""
SESSIONS = {"POST /console/session", "GET /console/session", "DELETE /console/session"}
"""Routes of browser sessions, which are not in the catalogue and need no key."""
REQUIRED = {
    "from": "1",
    "position": "1",
    "since": "2031-01-02",
    "id": "unknown",
    "referenceId": "unknown",
    "contentId": "unknown",
    "name": "x",
    "category": "a",
    "key": "b",
    "active": "true",
    "destinationId": UNKNOWN,
    **dict.fromkeys(("channelId", "infrastructureProfileId", "targetEventId"), UNKNOWN),
    **dict.fromkeys((name for of in OWNERS for name in (of.source_id, of.target_id)), UNKNOWN),
}
"""Values of all query parameters that are required."""


def body_of(name: str, bodies: Mapping[str, dict[str, Any]] = VALID) -> bytes:
    body = bodies.get(name, VALID.get(name))
    if name == "POST /api/log/exception/":
        return b"{}"
    return b"" if body is None else wrapped(SPECS[name], json.dumps(body).encode())


async def ask(
    http: httpx.AsyncClient, name: str, path: str, *, content: bytes | None = None, headers: Mapping[str, str] | None = None
) -> int:
    spec = SPECS[name]
    usual = {"client": "admin", "content-type": spec.rules.body_types[0][0]}
    body = body_of(name) if content is None else content
    return (await http.request(spec.method, path, content=body, headers={**usual, **(headers or {})})).status_code


def listing(status: int) -> set[str]:
    return {name for name, spec in SPECS.items() if status in statuses(spec)}


def nowhere() -> dict[str, str]:
    ids = (*_IDS, "sourceEventId", "destinationId", "transactionId", "publicationId")
    return {**{name: str(uuid4()) for name in ids}, **NOWHERE}


def asked(spec: Route, ids: Mapping[str, str]) -> str:
    """The address, with the query that the route requires."""
    model = spec.signature.query
    fields = {} if model is None else model.model_fields
    required = [wire_names(model, name)[0] for name, field in fields.items() if model is not None and field.is_required()]
    path = address(spec, dict(ids))
    return str(httpx.URL(path, params={name: REQUIRED[name] for name in required})) if required else path


@pytest.fixture
async def existing(http: httpx.AsyncClient, ids: dict[str, str], application: Application) -> dict[str, str]:
    """Ids of what is there, for every path. Streams that never end do so at once."""
    application.drain()
    key = (await http.post("/api/client/studio/keys/")).json()["keyId"]
    entry = await http.post("/api/log/", json=VALID["POST /api/log/"])
    return {
        **ids,
        "keyId": key,
        "tag": await put_tag(http, "known"),
        "infrastructureprofile": await add_profile(http),
        "log": str(entry.json()["id"]),
        "text": "known",
        "client_name": "admin",
        "file": "known.mp4",
        "level": "0",
        "place": "000",
    }


async def test_412_is_listed_where_if_match_counts(http: httpx.AsyncClient, existing: dict[str, str]) -> None:
    existing = {**existing, "restore": existing["id"]}
    profile = {"id": existing["id"], "infrastructureProfileId": existing["infrastructureprofile"]}
    assert (await http.post("/api/event/", json=profile)).status_code == 200
    result = {
        name for name, spec in SPECS.items() if await ask(http, name, asked(spec, existing), headers={"If-Match": '"999"'}) == 412
    }
    published = {"GET /media/{contentId}/{file}"}  # of a file that is there, in tests of its own
    assert result == listing(412) - published


async def test_404_is_listed_where_what_is_named_must_exist(http: httpx.AsyncClient, existing: dict[str, str]) -> None:
    result = set()
    for name, spec in SPECS.items():
        path = asked(spec, nowhere()) + NAMED_IN_QUERY.get(name, "")
        if await ask(http, name, path, content=body_of(name, WITH_UNKNOWN)) == 404:
            result.add(name)
    assert result == listing(404)


async def test_415_is_listed_where_a_body_is_read(http: httpx.AsyncClient, existing: dict[str, str]) -> None:
    result = {
        name
        for name, spec in SPECS.items()
        if await ask(http, name, asked(spec, existing), content=b"x", headers={"content-type": "nonsense"}) == 415
    }
    checks = {name for name in SPECS if name.startswith("GET /api/health/live/")}
    assert result == listing(415) - checks


async def test_413_is_listed_for_every_write(http: httpx.AsyncClient, existing: dict[str, str]) -> None:
    huge = b"x" * (1024 * 1024 + 1)
    result = {name for name, spec in SPECS.items() if await ask(http, name, asked(spec, nowhere()), content=huge) == 413}
    assert result == listing(413) == {name for name in SPECS if not name.startswith("GET ")}


async def test_503_is_listed_where_the_database_is_needed(http: httpx.AsyncClient, inner: Core, existing: dict[str, str]) -> None:
    inner.directory.invalidate()
    await inner.database.close()
    result = {name for name, spec in SPECS.items() if await ask(http, name, asked(spec, existing)) == 503}
    with_cookie = {"GET /console/session", "DELETE /console/session"}  # without one they ask nobody
    assert result | with_cookie == listing(503)


async def test_409_is_listed_where_something_is_written(http: httpx.AsyncClient, existing: dict[str, str]) -> None:
    """A POST gets it for an idempotency key in use. Every other write may lose a race."""
    posts = [name for name, spec in SPECS.items() if spec.keeps_answer]
    assert (await http.post("/api/room/", json={"name": "x"}, headers={"Idempotency-Key": "k"})).status_code == 201
    for name in posts:
        assert await ask(http, name, asked(SPECS[name], existing), headers={"Idempotency-Key": "k"}) == 409, name
    reads = {"GET /api/vod/{id}/metadata", "GET /api/provision/resources/{eventId}"}
    assert listing(409) == {name for name, spec in SPECS.items() if spec.rules.respond is not None} | reads
    writes = {name for name in SPECS if not name.startswith("GET ")}
    clones = {name for name in SPECS if "/clone/" in name}
    assert listing(409) == writes - {"POST /{client_name}/speke"} - EACH - SESSIONS | clones | reads


async def test_what_each_surface_adds(http: httpx.AsyncClient) -> None:
    assert listing(422) == {"POST /{client_name}/speke"}
    made = {f"POST /api/asset/{kind}/" for kind in ("gif", "video", "image", "caption")}
    composed = {"POST /api/compose/", "PUT /api/compose/event/{eventId}", "GET /api/compose/clone/{sourceEventId}"}
    jobs = {"POST /engine/job", "POST /engine/jobs/{job_id}/rerun", *made, *composed}
    assert listing(429) == {"POST /{client_name}/speke", "POST /console/session", *jobs}
    closed = {name for name, spec in SPECS.items() if spec.permission.roles}
    assert listing(401) == listing(403) == closed | SESSIONS
    assert listing(400) == SPECS.keys()


async def test_an_unlisted_status_fails_the_test_that_sees_it(http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    room = await add_room(http)
    monkeypatch.setitem(LISTED, ("GET", "/api/room/{id}"), frozenset({204}))
    with pytest.raises(UnlistedStatus, match=r"/api/room/\{id\} gives 200 and lists \[204\]"):
        await http.get(f"/api/room/{room}")

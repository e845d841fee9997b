"""Browsers and gateways at the whole API: answers, and what the log holds afterwards."""

from __future__ import annotations

from re import sub
from typing import Any
from uuid import uuid4

import httpx
import pytest

from api.http.routing import routes_of
from api.wiring.core import Core
from api.wiring.services import ROUTES
from projections.log.reader import head

STRICT = {"Prefer": "handling=strict"}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def causes(inner: Core) -> list[dict[str, Any]]:
    return [row[0] for row in await inner.database.rows("SELECT metadata FROM events ORDER BY position", {})]


async def test_a_misspelled_field_is_told_or_refused(http: httpx.AsyncClient, inner: Core) -> None:
    body = {"titel": "Cup final", "tags": [{"name": "cup", "nam": "x"}]}
    before = await head(inner.database)
    refused = await http.post("/api/event/", json=body, headers=STRICT)
    assert (refused.status_code, [error["field"] for error in refused.json()["errors"]]) == (400, ["titel", "tags[0].nam"])
    assert await head(inner.database) == before
    answer = await http.post("/api/event/", json=body)
    assert answer.status_code == 200
    assert answer.headers["warning"] == '299 - "unknown: titel (did you mean title?); tags[0].nam (did you mean name?)"'
    assert await head(inner.database) > before


@pytest.mark.parametrize("path", ["/api/audit/events/?foo=bar", "/api/audit/event/x/?pagesize=1&aftr=1"])
async def test_the_audit_refuses_parameters_that_it_does_not_know(http: httpx.AsyncClient, path: str) -> None:
    answer = await http.get(path)
    assert (answer.status_code, len(answer.json()["errors"])) == (400, 1)
    assert "is unknown" in answer.json()["errors"][0]["message"]


async def test_the_engine_tells_and_refuses_in_its_own_words(http: httpx.AsyncClient) -> None:
    headers = {"client": "admin"}
    answer = await http.get("/engine/jobs?itms=5", headers=headers)
    assert (answer.status_code, answer.headers["warning"]) == (200, '299 - "unknown: itms (did you mean items?)"')
    body = {"job": {"workflow": "probe_media", "prioritty": 1}, "parameters": {}}
    refused = await http.post("/engine/job", json=body, headers={**headers, **STRICT})
    assert refused.status_code == 400
    assert refused.json()["error"] == "job.prioritty: is unknown; did you mean priority?"


async def test_a_trace_is_in_the_cause_of_its_events_and_nothing_else_is(http: httpx.AsyncClient, inner: Core) -> None:
    begun = len(await causes(inner))
    headers = {"traceparent": TRACE, "X-Request-ID": "gateway-7"}
    assert (await http.post("/api/room/", json={"name": "a"}, headers=headers)).status_code == 201
    assert (await http.post("/api/room/", json={"name": "b"}, headers={"traceparent": TRACE.upper()})).status_code == 201
    traced, untraced = (await causes(inner))[begun:]
    assert (traced["trace_parent"], traced["correlation_id"]) == (TRACE, "gateway-7")
    assert "trace_parent" not in untraced


async def test_an_events_tag_covers_the_names_that_it_shows(http: httpx.AsyncClient) -> None:
    room = (await http.post("/api/room/", json={"name": "Studio 1"})).json()["Id"]
    event = str(uuid4())
    await http.post("/api/event/", json={"id": event, "title": "x" * 600, "roomId": room})
    packed = {"Accept-Encoding": "gzip"}
    first = await http.get(f"/api/event/{event}", headers=packed)
    tag = first.headers["etag"]
    assert (await http.get(f"/api/event/{event}", headers={**packed, "If-None-Match": tag})).status_code == 304
    await http.put(f"/api/room/{room}", json={"name": "Studio 2"})
    renamed = await http.get(f"/api/event/{event}", headers={**packed, "If-None-Match": tag})
    assert (renamed.status_code, renamed.json()["room"]) == (200, "Studio 2")
    patch = [{"op": "replace", "path": "/Title", "value": "y"}]
    sent = {"If-Match": renamed.headers["etag"], "Content-Type": "application/json-patch+json"}
    assert (await http.patch(f"/api/event/{event}", json=patch, headers=sent)).status_code == 200


async def test_a_bearer_key_works_everywhere_but_at_the_key_provider(http: httpx.AsyncClient) -> None:
    bearer = {"Authorization": f"Bearer {http.headers['API-KEY']}", "API-KEY": "", "client": "admin"}
    for path in ("/api/room/", "/api/audit/events/", "/engine/jobs"):
        assert (await http.get(path, headers=bearer)).status_code == 200, path
    assert (await http.get("/admin/speke/heartbeat", headers=bearer)).status_code == 401


async def test_a_page_links_to_the_next_one(http: httpx.AsyncClient) -> None:
    for number in range(3):
        await http.post("/api/event/", json={"title": f"50% {number}"})
    path: str | None = "/api/event/?PAGESIZE=2&search=50%25&pagenumber=1"
    seen = []
    while path is not None:
        answer = await http.get(path)
        seen += [event["title"] for event in answer.json()["results"]]
        assert "warning" not in answer.headers
        path = answer.links["next"]["url"] if "link" in answer.headers else None
    assert sorted(seen) == ["50% 0", "50% 1", "50% 2"]


async def test_options_names_the_methods_that_a_405_names(http: httpx.AsyncClient) -> None:
    """This also holds for paths where pages of other origins may use only some of the methods."""
    paths = {spec.documented_path for spec in routes_of(ROUTES)}
    answered = 0
    for path in sorted(paths):
        place = sub(r"\{\+?\w+\}", "x", path)
        refused, options = await http.request("TRACE", place), await http.request("OPTIONS", place)
        assert (refused.status_code, options.status_code in (204, 405)) == (405, True), path
        assert options.headers["allow"] == refused.headers["allow"], path
        answered += options.status_code == 204
    assert answered >= 3, "published media and the built-in origin"

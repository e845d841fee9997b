"""Requests and assertions of the API tests: over HTTP, and on the log."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx

from api.wiring.core import Core
from projections.log.reader import head, read
from tests.domain.channel.texts_given import FLOW, PROFILE

UNKNOWN = "00000000-0000-4000-8000-000000000000"
AWKWARD = ["a/b", "100%", "a+b", "what?", "#1", "é", "日本", '"', "'", "\\", "two words", "a%2Fb", "../x", "a&b=c;d", " ", "🎬"]
PATCH_TYPE = {"content-type": "application/json-patch+json"}


@dataclass(frozen=True)
class Logged:
    """A domain event as the log holds it."""

    position: int
    stream: str
    topic: str
    data: dict[str, Any]
    cause: dict[str, Any]


async def logged(inner: Core, stream: str | None = None) -> list[Logged]:
    """Return the events of the whole log, or of one aggregate."""
    events = [
        Logged(event.position, event.stream, event.topic, json.loads(event.state), json.loads(event.metadata))
        for event in await read(inner.database, 0, limit=10_000)
    ]
    return [event for event in events if stream in (None, event.stream)]


async def topics(inner: Core, stream: str) -> list[str]:
    return [event.topic for event in await logged(inner, stream)]


async def of_event(inner: Core, key: str) -> list[str]:
    """Return the types of the events of a media Event, without the common prefix."""
    return [topic.removeprefix("event.") for topic in await topics(inner, f"event:{key}")]


async def last(inner: Core) -> int:
    """Return the number of events in the log, which is the last position because positions have no gaps."""
    return await head(inner.database)


async def add(http: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    """A new Event."""
    answer = await http.post("/api/event/", json=fields)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def add_room(http: httpx.AsyncClient, name: str = "Main hall", **fields: Any) -> str:
    answer = await http.post("/api/room/", json={"name": name, **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["Id"])


async def put_tag(http: httpx.AsyncClient, name: str) -> str:
    answer = await http.put("/api/tag/", json={"name": name})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def add_event_type(http: httpx.AsyncClient, name: str = "Match", **fields: Any) -> str:
    answer = await http.post("/api/eventtype/", json={"name": name, **fields})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


async def add_playlist(http: httpx.AsyncClient, name: str = "Best of") -> str:
    answer = await http.post("/api/playlist/", json={"name": name})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


async def add_playlist_item(http: httpx.AsyncClient, playlist: str, event: str, at: str = "2031-01-02T03:04:05.000Z") -> str:
    answer = await http.post(f"/api/playlist/{playlist}/playlistItems/", json={"eventId": event, "startTime": at})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def add_archiver_stream(http: httpx.AsyncClient, **fields: Any) -> int:
    times = {"startTime": "2031-01-02T03:00:00.000Z", "endTime": "2031-01-02T05:00:00.000Z"}
    body = {"profileId": "p", "captureId": "c", "ismUrl": "http://origin/a.ism", **times, **fields}
    answer = await http.post("/api/archiverstream/", json=body)
    assert answer.status_code == 201, answer.text
    return int(answer.json()["id"])


async def add_channel(http: httpx.AsyncClient, name: str = "Main channel", **fields: Any) -> str:
    answer = await http.post("/api/channel/", json={"name": name, **fields})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


async def add_flow(http: httpx.AsyncClient, name: str = "Main flow", configuration: Any = FLOW, **fields: Any) -> str:
    answer = await http.post("/api/flow/", json={"name": name, "configurationJson": json.dumps(configuration), **fields})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


async def add_profile(http: httpx.AsyncClient, name: str = "Main profile", configuration: Any = PROFILE, **fields: Any) -> str:
    text = json.dumps(configuration)
    answer = await http.post("/api/infrastructureprofile/", json={"name": name, "configurationJson": text, **fields})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


async def add_webhook(http: httpx.AsyncClient, **fields: Any) -> str:
    """A webhook of the Event that `eventId` names, or of all."""
    path = "/api/webhook/event/" if "eventId" in fields else "/api/webhook/"
    answer = await http.post(path, json={"webhookUrl": "https://hooks.test/a", **fields})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


async def event(http: httpx.AsyncClient, key: str) -> dict[str, Any]:
    answer = await http.get(f"/api/event/{key}")
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def patch(http: httpx.AsyncClient, path: str, *steps: Any, **headers: str) -> httpx.Response:
    """PATCH with a JSON Patch; a path that is only an id means the Event with that id."""
    address = path if path.startswith("/") else f"/api/event/{path}"
    return await http.patch(address, content=json.dumps(steps), headers={**PATCH_TYPE, **headers})


def replace(path: str, value: Any) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}


def fields_of(answer: httpx.Response) -> list[str]:
    """The fields that a 400 complains of."""
    assert_problem(answer, 400)
    return [error["field"] for error in answer.json().get("errors", [])]


def version_of(answer: httpx.Response) -> int:
    """Return the version with which the ETag of an answer begins."""
    return int(answer.headers["etag"].strip('"').partition(".")[0])


def assert_problem(answer: httpx.Response, status: int) -> None:
    """RFC 9457, and the transaction id in body and header alike."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body.keys() - {"errors"} == {"type", "title", "status", "detail", "transactionId"}
    assert body["status"] == status
    assert body["transactionId"] == answer.headers["x-transaction-id"]


def engine_error(answer: httpx.Response, status: int) -> str:
    """The error text of a response of the job engine; its body holds nothing else but, on some calls, the job's id."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-transaction-id"]
    body = answer.json()
    assert body.keys() - {"id"} == {"error"}
    return str(body["error"])


def new_id() -> str:
    return str(uuid4())

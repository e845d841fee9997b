"""A small set of routes that shows every convention once, and the application around it."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Annotated, Any
from uuid import UUID

import httpx
from prometheus_client import CollectorRegistry
from pydantic import AliasChoices, Field

from api.kernel.answer import Answer
from api.kernel.app import Application, build
from api.kernel.auth import ADMIN, OPEN, READ, WRITE, Caller, Role
from api.kernel.body import FORM, JSON, JSON_PATCH, XML
from api.kernel.call import Call
from api.kernel.errors import Failure
from api.kernel.log import RequestLog
from api.kernel.routes import Routes
from api.kernel.surface import Surface
from api.kernel.wire import Flag, Instant, Integer, NamedInt, Text, Wire
from domain.kernel.answers import AnswerAlreadyRecorded, RecordedAnswer
from domain.kernel.clock import system_clock
from domain.kernel.errors import Conflict, NotFound, Refused, StaleVersion, Unavailable
from domain.kernel.sealed import Marker

ID = "0f0e0d0c-0b0a-4908-8706-050403020100"
SECRET = "mlk_verysecret"
KEYS = {
    SECRET: Caller("admin", frozenset({Role.ADMIN})),
    "mlk_viewer": Caller("viewer", frozenset({Role.VIEWER})),
    "mlk_operator": Caller("operator", frozenset({Role.OPERATOR})),
}


class Colour(IntEnum):
    RED = 0
    GREEN = 4


class Tag(Wire):
    name: str


class Thing(Wire):
    title: str
    ref_id: str | None = None
    scheduled_start: Instant | None = None
    auto_start: Flag = False
    colour: Annotated[Colour, NamedInt(Colour)] | None = None
    priority: Integer = 5
    ratio: float | None = None
    tags: tuple[Tag, ...] = ()
    labels: list[str] = Field(default_factory=list)
    owner: UUID | None = None
    destination_json: str | None = Field(default=None, validation_alias=AliasChoices("destinationJson", "configJson"))
    parameters: dict[str, Any] = Field(default_factory=dict)


class ShownThing(Wire):
    id: UUID
    title: str
    shown_at: Instant


class Filter(Wire):
    page_size: Integer = 20
    search: Text | None = None
    states: tuple[int, ...] = ()
    deleted: Flag = False


@dataclass
class Shelf:
    """The service that endpoints are given."""

    version: int = 5
    posts: int = 0
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    failure: Exception | None = None


things = Routes("/thing")


@things.post("/", WRITE, answers=ShownThing, status=201, body_types=(JSON, FORM))
async def add_thing(call: Call, body: Thing, shelf: Shelf) -> Answer:
    """Adds a thing.

    And says so at length."""
    shelf.posts += 1
    if shelf.failure is not None:
        raise shelf.failure
    shown = {"id": shelf.posts, "sent": body.model_dump(mode="json", exclude_unset=True), "secret": "s3"}
    return Answer(201, shown, etag=1, location=f"/api/thing/{shelf.posts}", replay_body={**shown, "secret": None})


@things.get("/", READ, answers=list[ShownThing])
async def list_things(call: Call, query: Filter) -> Answer:
    return Answer(body=query)


@things.get("/reference", READ)
async def by_reference(call: Call) -> Answer:
    return Answer(body={"route": "reference"})


@things.get("/{thingId}", READ, answers=ShownThing, absent=204)
async def get_thing(call: Call, thing_id: UUID, shelf: Shelf) -> Answer:
    if str(thing_id) != ID:
        raise NotFound("thing", str(thing_id))
    return Answer(body={"id": thing_id, "base": call.base_url, "params": dict(call.params)}, etag=shelf.version)


@things.put("/{id}", WRITE)
async def put_thing(call: Call, id: UUID, body: Tag | None, shelf: Shelf) -> Answer:
    if call.if_match is not None and shelf.version not in call.if_match:
        raise StaleVersion(shelf.version)
    return Answer(body={"body": None if body is None else body.name, "ifMatch": sorted(call.if_match or ())})


@things.patch("/{id}", WRITE, body_types=(JSON_PATCH,))
async def patch_thing(call: Call, id: UUID, body: list[dict[str, Any]]) -> Answer:
    return Answer(body=body)


@things.delete("/{id}", ADMIN, status=204)
async def delete_thing(call: Call, id: UUID) -> Answer:
    return Answer(204)


@things.get("/{id}/state", READ)
async def thing_state(call: Call, id: str) -> Answer:
    return Answer(body={"route": "state", "id": id})


@things.get("/reference/{number}/count", READ)
async def count(call: Call, number: int) -> Answer:
    return Answer(body={"number": number})


@things.post("/slow/", WRITE)
async def slow(call: Call, shelf: Shelf) -> Answer:
    shelf.entered.set()
    await shelf.hold.wait()
    return Answer(body={"actor": call.cause.actor, "correlation": call.cause.correlation_id})


@things.post("/sealed/", WRITE)
async def sealed(call: Call, answers: MemoryAnswers) -> Answer:
    answer = Answer(201, {"n": answers.writes}, location="/api/thing/1")
    if call.idempotency is not None:
        await answers.record(call.idempotency.seal(answer))
    return answer


@things.post("/fail/", OPEN)
async def fail(call: Call, body: dict[str, Any]) -> Answer:
    raise {
        "refused": Refused("the thing is locked"),
        "conflict": Conflict("the name is taken"),
        "unavailable": Unavailable("the database is down", retry_after=7),
        "absent": NotFound("event_type", "x"),
        "other": RuntimeError(SECRET),
    }[body["with"]]


@things.get("/export/", READ, media_type="application/x-ndjson")
async def export(call: Call) -> Answer:
    async def lines() -> AsyncIterator[bytes]:
        yield b"{}\n"
        yield b"[]\n"

    return Answer(body=lines(), media_type="application/x-ndjson")


@things.get("/followed/{kind}", READ, media_type="text/event-stream")
async def followed(call: Call, kind: str, shelf: Shelf) -> Answer:
    """A stream that goes on until the shelf is let go, or its caller or the process is gone."""

    async def pieces() -> AsyncIterator[bytes]:
        try:
            yield b"data: 1\n\n"
            shelf.entered.set()
            await shelf.hold.wait()
            if shelf.failure is not None:
                raise shelf.failure
            yield b"data: 2\n\n"
        finally:
            shelf.closed.set()

    return Answer(body=pieces(), media_type=f"text/{kind}")


def _plain(failure: Failure, call: Call) -> Answer:
    return Answer(failure.status, failure.detail.encode(), media_type="text/plain; charset=utf-8")


provider = Routes(surface=Surface("provider", render=_plain, error_type="text/plain", error_model=None, body_limit=64))


@provider.post("/{client_name}/speke", WRITE, body_types=(XML,), media_type="application/xml")
async def speke(call: Call, client_name: str, body: bytes) -> Answer:
    return Answer(body=body + client_name.encode(), media_type="application/xml")


class MemoryAnswers:
    """The twin of the store over PostgreSQL."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], RecordedAnswer] = {}
        self.writes = 0

    async def recorded(self, client: str, key: str) -> RecordedAnswer | None:
        return self.rows.get((client, key))

    async def record(self, answer: RecordedAnswer) -> None:
        if (answer.client, answer.key) in self.rows:
            raise AnswerAlreadyRecorded(answer.client, answer.key)
        self.writes += 1
        self.rows[answer.client, answer.key] = answer


async def authenticate(key: str) -> Caller | None:
    return KEYS.get(key)


@dataclass
class Toy:
    """The application with all its parts within reach."""

    shelf: Shelf = field(default_factory=Shelf)
    answers: MemoryAnswers = field(default_factory=MemoryAnswers)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    stream: io.StringIO = field(default_factory=io.StringIO)
    log: RequestLog = field(init=False)
    app: Application = field(init=False)

    def __post_init__(self) -> None:
        self.log = RequestLog(self.stream, clock=system_clock)
        self.app = build(
            [things, provider],
            {Shelf: self.shelf, MemoryAnswers: self.answers},
            authenticate=authenticate,
            answers=self.answers,
            fingerprint=Marker(bytes(32)),
            registry=self.registry,
            request_log=self.log,
        )

    def client(self, key: str | None = SECRET) -> httpx.AsyncClient:
        headers = {} if key is None else {"API-KEY": key}
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://media.example:8080", headers=headers)

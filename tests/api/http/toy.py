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
from fastapi import APIRouter, Body, Path, Query
from prometheus_client import CollectorRegistry
from pydantic import AliasChoices, Field

from api.http.app import Application
from api.http.body import FORM, JSON, JSON_PATCH, XML
from api.http.cross_origin import CrossOrigin
from api.http.errors import Failure
from api.http.request import Caller
from api.http.request import Request as HttpRequest
from api.http.response import Response
from api.http.routing import OPEN, Route, Service, rules
from api.http.surface import Surface
from api.kernel.app import build
from api.kernel.auth import ADMIN, READ, WRITE, Role
from api.kernel.log import RequestLog
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Flag, Instant, Integer, NamedInt, Text, Wire
from domain.kernel.clock import system_clock
from domain.kernel.encryption import KeyedHash
from domain.kernel.errors import Conflict, NotFound, OutcomeUnknown, PreconditionFailed, Refused, Unavailable
from domain.kernel.idempotency import IdempotencyKeyUsed, IdempotencyRecord
from domain.kernel.ports import Outcome

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
    other: str = "hall"
    size: int = 2000
    posts: int = 0
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    failure: Exception | None = None


class MemoryIdempotency:
    """The twin of the store over PostgreSQL. Its aggregates are the results alone."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], IdempotencyRecord] = {}
        self.writes = 0

    async def find(self, client: str, key: str) -> IdempotencyRecord | None:
        return self.rows.get((client, key))

    async def record(self, record: IdempotencyRecord) -> None:
        of = record.of
        if (of.client, of.key) in self.rows:
            raise IdempotencyKeyUsed(of.client, of.key)
        self.writes += 1
        self.rows[of.client, of.key] = record

    async def outcome(self, record: IdempotencyRecord) -> Outcome[Any]:
        return Outcome(result=record.result, as_of=0, recorded=True)


things = APIRouter(prefix="/api/thing", tags=["thing"], route_class=MediaRoute)


async def thing_added(request: Request, outcome: Outcome[Any]) -> Response:
    number = outcome.result["id"]
    shown = {**outcome.result, "secret": outcome.secrets.get("secret"), "base": request.root_url}
    return Response(shown, 201, etag=1, location=f"/api/thing/{number}")


@things.post("/", dependencies=[WRITE], response_model=ShownThing, status_code=201)
@rules(body_types=(JSON, FORM), respond=thing_added)
async def add_thing(request: Request, body: Thing, shelf: Service[Shelf]) -> Outcome[Any]:
    """Adds a thing.

    And says so at length."""
    shelf.posts += 1
    if shelf.failure is not None:
        raise shelf.failure
    shown = {"id": shelf.posts, "sent": body.model_dump(mode="json", exclude_unset=True)}
    return Outcome(result=shown, secrets={"secret": "s3"})


@things.get("/", dependencies=[READ], response_model=list[ShownThing])
async def list_things(request: Request, query: Annotated[Filter, Query()]) -> Response:
    return Response(query)


@things.get("/check", dependencies=[READ])
async def check_things(request: Request) -> Response:
    return Response({"found": True}, 415, reason=b"Other Words")


@things.get("/reference", dependencies=[READ])
async def by_reference(request: Request) -> Response:
    return Response({"route": "reference"})


@things.get("/{thingId}", dependencies=[READ], response_model=ShownThing)
@rules(absent=204)
async def get_thing(request: Request, thing_id: Annotated[UUID, Path(alias="thingId")], shelf: Service[Shelf]) -> Response:
    if str(thing_id) != ID:
        raise NotFound("thing", str(thing_id))
    shown = {"id": thing_id, "base": request.root_url, "params": dict(request.path_params)}
    return Response(shown, etag=shelf.version, settled=True)


@things.get("/{thingId}/page", dependencies=[READ], response_model=ShownThing)
async def thing_page(request: Request, thing_id: Annotated[UUID, Path(alias="thingId")], shelf: Service[Shelf]) -> Response:
    """Return a body larger than one packet, and the name of another thing, which has its own version."""
    return Response({"id": thing_id, "other": shelf.other, "text": "a" * shelf.size}, etag=shelf.version)


@things.put("/{id}", dependencies=[WRITE])
async def put_thing(request: Request, id: UUID, shelf: Service[Shelf], body: Annotated[Tag | None, Body()] = None) -> Response:
    if request.if_match is not None and shelf.version not in request.if_match:
        raise PreconditionFailed(shelf.version)
    return Response({"body": None if body is None else body.name, "ifMatch": sorted(request.if_match or ())})


@things.patch("/{id}", dependencies=[WRITE])
@rules(body_types=(JSON_PATCH,))
async def patch_thing(request: Request, id: UUID, body: Annotated[list[dict[str, Any]], Body()]) -> Response:
    return Response(body)


@things.delete("/{id}", dependencies=[ADMIN], status_code=204)
async def delete_thing(request: Request, id: UUID) -> Response:
    return Response(status_code=204)


@things.get("/{id}/state", dependencies=[READ])
async def thing_state(request: Request, id: str) -> Response:
    return Response({"route": "state", "id": id})


@things.get("/reference/{number}/count", dependencies=[READ])
async def count(request: Request, number: int) -> Response:
    return Response({"number": number})


async def result(request: Request, outcome: Outcome[Any]) -> Response:
    return Response(outcome.result)


@things.post("/slow/", dependencies=[WRITE])
@rules(respond=result)
async def slow(request: Request, shelf: Service[Shelf]) -> Outcome[Any]:
    shelf.entered.set()
    await shelf.hold.wait()
    return Outcome(result={"actor": request.cause.actor, "correlation": request.cause.correlation_id})


@things.post("/appended/", dependencies=[WRITE], status_code=202)
@rules(respond=result)
async def appended(request: Request, store: Service[MemoryIdempotency]) -> Outcome[Any]:
    """Stores its key by itself, as an append does."""
    counted = {"n": store.writes}
    if request.idempotency is not None:
        await store.record(IdempotencyRecord(request.idempotency, (), counted))
    return Outcome(result=counted, recorded=request.idempotency is not None)


@things.post("/fail/", dependencies=[OPEN])
async def fail(request: Request, body: Annotated[dict[str, Any], Body()]) -> Response:
    raise {
        "refused": Refused("the thing is locked"),
        "conflict": Conflict("the name is taken"),
        "unavailable": Unavailable("the database is down", retry_after=7),
        "unknown": OutcomeUnknown(),
        "absent": NotFound("event_type", "x"),
        "other": RuntimeError(SECRET),
    }[body["with"]]


@things.get("/export/", dependencies=[READ])
@rules(media_type="application/x-ndjson")
async def export(request: Request) -> Response:
    async def lines() -> AsyncIterator[bytes]:
        yield b"{}\n"
        yield b"[]\n"

    return Response(lines(), media_type="application/x-ndjson")


@things.get("/followed/{kind}", dependencies=[READ])
@rules(media_type="text/event-stream")
async def followed(request: Request, kind: str, shelf: Service[Shelf]) -> Response:
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

    return Response(pieces(), media_type=f"text/{kind}")


def _plain(failure: Failure, request: HttpRequest) -> Response:
    return Response(failure.detail.encode(), failure.status, media_type="text/plain; charset=utf-8")


class ProviderRoute(Route):
    surface = Surface("provider", render=_plain, error_type="text/plain", error_model=None, body_limit=64)


provider = APIRouter(tags=["provider"], route_class=ProviderRoute)


@provider.post("/{client_name}/speke", dependencies=[WRITE])
@rules(body_types=(XML,), media_type="application/xml")
async def speke(request: Request, client_name: str, body: Annotated[bytes, Body()]) -> Response:
    return Response(body + client_name.encode(), media_type="application/xml")


async def authenticate(key: str) -> Caller | None:
    return KEYS.get(key)


@dataclass
class Toy:
    """The application with all its parts within reach."""

    shelf: Shelf = field(default_factory=Shelf)
    idempotency: MemoryIdempotency = field(default_factory=MemoryIdempotency)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    stream: io.StringIO = field(default_factory=io.StringIO)
    public_url: str = ""
    cross_origin: CrossOrigin | None = None
    log: RequestLog = field(init=False)
    app: Application = field(init=False)

    def __post_init__(self) -> None:
        self.log = RequestLog(self.stream, clock=system_clock)
        self.app = build(
            [things, provider],
            {Shelf: self.shelf, MemoryIdempotency: self.idempotency},
            authenticate=authenticate,
            idempotency=self.idempotency,
            fingerprint=KeyedHash(bytes(32)),
            registry=self.registry,
            request_log=self.log,
            public_url=self.public_url,
            cross_origin=self.cross_origin,
        )

    def client(self, key: str | None = SECRET) -> httpx.AsyncClient:
        headers = {} if key is None else {"API-KEY": key}
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://media.example:8080", headers=headers)

"""The application: a `FastAPI` whose router finds routes in a trie, inside one middleware for what every exchange has in common."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any, Protocol
from urllib.parse import quote

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts
from prometheus_client import CollectorRegistry, Gauge
from pydantic_core import to_json
from starlette import requests
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.guards.large_bodies import LargeBodies
from api.guards.unsent import UnsentBodies
from api.http.cross_origin import CrossOrigin
from api.http.endpoint import Endpoint
from api.http.errors import FailureOf, HttpError, failure_of
from api.http.headers import FOR_ITS_CALLER, NOSNIFF, NOT_STORED, UP_TO_THE_RESPONSE, Caching
from api.http.incoming import Pieces
from api.http.metrics import Meter, RequestMetrics
from api.http.openapi import ApiDescription, corrected
from api.http.parsing import JsonParser, invalid, parse_json
from api.http.path_trie import PathTrie
from api.http.request import SCOPE, Caller, Request
from api.http.response import Document, OpenStreams, Response
from api.http.routing import Respond, Route
from api.http.surface import Surface

BeginSpan = Callable[[Request, Surface], Callable[[int], None] | None]
"""Begins the span of a request in a distributed trace, or none. The result ends it with the status of the response."""
Services = Mapping[Any, object]
_ENTRY = "medialedger.entry"
_logger = logging.getLogger("medialedger.http")


class Idempotency(Protocol):
    """Handles a request with an Idempotency-Key. `act` carries the request out; it is called at most once."""

    async def run(self, request: Any, act: Callable[[], Awaitable[Any]], *, respond: Respond, status: int) -> Response: ...


class RequestLog(Protocol):
    """The request log: gets an entry for each request."""

    def wants(self, method: str, status: int, *, routine: bool) -> bool: ...

    def add(self, request: Request, *, status: int, seconds: float) -> None: ...


@dataclass(slots=True)
class Entry:
    """An application's part for one path and method: a route of it, or the error where there is none."""

    app: ASGIApp
    path: str
    surface: Surface
    meter: Meter
    cross_origin: CrossOrigin | None
    route: APIRoute | None = None
    names: tuple[str, ...] = ()
    caching: Caching = UP_TO_THE_RESPONSE
    streamed_body: bool = False
    bound: Endpoint | None = None
    """The endpoint that is called in the place of `app` where FastAPI is not needed."""


@dataclass(slots=True)
class Leaf:
    """One path: the routes by method, and the application's entries for them once they are bound. The entry under the empty method
    answers 405."""

    path: str
    surface: Surface
    routes: dict[str, tuple[RouteContext, APIRoute]] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)


class TrieRouter(APIRouter):
    """FastAPI's router, which finds the `APIRoute`s in a trie instead of trying one after the other.

    Other routes, such as mounted applications, are tried where the trie has none. The trie is made when it is first needed, and
    again after routes were added."""

    def __init__(self, application: Application, **options: Any) -> None:
        super().__init__(redirect_slashes=False, **options)
        self._application = application
        self._paths: PathTrie[Leaf] = PathTrie()
        self._leaves: list[Leaf] = []
        self._unknown: list[tuple[bytes, Entry]] = []
        self._size = -1
        self._has_other_routes = False

    def prepare(self) -> None:
        """Make the trie. A route that is declared twice is an error."""
        application, self._size, self._paths, self._leaves = self._application, len(self.routes), PathTrie(), []
        contexts = list(iter_route_contexts(self.routes))
        ours = [(context, route) for context in contexts if isinstance(route := context.original_route, APIRoute)]
        self._has_other_routes = len(ours) < len(contexts)
        surfaces = {application.fallback.prefix: application.fallback}
        for context, route in ours:
            surface = self._surface_of(route)
            surfaces.setdefault(surface.prefix, surface)
            path = str(context.path)
            leaf = self._paths.add(path, Leaf(str(context.path_format), surface), any_case=surface.any_case)
            if not leaf.routes:
                self._leaves.append(leaf)
            for method in sorted(context.methods or ()):
                if method in leaf.routes:
                    raise ValueError(f"{method} {path} is declared twice")
                leaf.routes[method] = (context, route)
                if method == "GET" and (not isinstance(route, Route) or application.serves_head(route)):
                    leaf.routes["HEAD"] = leaf.routes[method]
            for segment in surface.never_in_path:
                self._paths.reserve(segment)
        longest_first = sorted(filter(None, surfaces), key=len, reverse=True)
        no_path = _raising(partial(HttpError, "There is nothing at this path.", status=404))
        self._unknown = [
            (each.prefix.encode(), application.entry(no_path, "unknown", each))
            for each in (*map(surfaces.__getitem__, longest_first), replace(application.fallback, prefix=""))
        ]

    def bind(self) -> None:
        """Bind every route now, so that a missing service stops the start, not a request. A route is otherwise bound by the first
        request to its path."""
        for leaf in self._leaves:
            self._bind(leaf)

    def _bind(self, leaf: Leaf) -> None:
        application, entries = self._application, leaf.entries
        for method, declared in leaf.routes.items():
            context, route = declared
            if method == "HEAD" and declared is leaf.routes.get("GET"):
                entries[method] = entries["GET"]
            else:
                surface = self._surface_of(route)
                entries[method] = application.entry(context.app, str(context.path_format), surface, method=method, route=route)
        routes = {method: entry.route for method, entry in entries.items() if isinstance(entry.route, Route)}
        rule = application.cross_origin_of(leaf.surface)
        if rule is not None and rule.origins != frozenset() and "OPTIONS" not in entries:
            entries["OPTIONS"] = application.entry(_preflight(rule, routes), leaf.path, leaf.surface)
        allow = ", ".join(sorted(entries))
        wrong_method = partial(HttpError, f"This path answers {allow}.", status=405, headers=(("allow", allow),))
        entries[""] = application.entry(_raising(wrong_method), leaf.path, leaf.surface)

    def _surface_of(self, route: APIRoute) -> Surface:
        return route.surface if isinstance(route, Route) else self._application.fallback

    def find(self, scope: Scope) -> Entry:
        """Return the entry for a request, whose path values are then in the scope, and are percent-decoded once."""
        if self._size != len(self.routes):
            self.prepare()
        raw_path = scope.get("raw_path")
        if raw_path is None:  # optional in ASGI, though every server that we know sends it
            raw_path = scope["raw_path"] = quote(scope["path"]).encode()
        leaf, values = self._paths.find(raw_path)
        if leaf is not None:
            if not leaf.entries:
                self._bind(leaf)
            entry = leaf.entries.get(scope["method"]) or leaf.entries[""]
            scope["route"] = entry.route
            scope["path_params"] = dict(zip(entry.names, values, strict=True)) if entry.names else {}
            return entry
        return next(
            unknown
            for prefix, unknown in self._unknown
            if raw_path[: len(prefix)].lower() == prefix and (not prefix or raw_path[len(prefix) : len(prefix) + 1] in (b"", b"/"))
        )

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        entry: Entry | None = scope.get(_ENTRY)
        if entry is None or (entry.path == "unknown" and self._has_other_routes):
            await super().app(scope, receive, send)
        else:
            scope["router"] = self
            await entry.app(scope, receive, send)


def _raising(error: Callable[[], Exception]) -> ASGIApp:
    async def fail(scope: Scope, receive: Receive, send: Send) -> None:
        raise error()

    return fail


def _preflight(rule: CrossOrigin, routes: Mapping[str, Route]) -> ASGIApp:
    """Return the application that answers OPTIONS. It needs no key: browsers send none before they know that they may."""
    headers = {method: route.headers_read for method, route in routes.items()}

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await rule.preflight(scope[SCOPE], headers)(scope, receive, send)

    return answer


class Exchange:
    """The middleware around every exchange: finds the entry, and gives the response the headers that all responses have.

    Exceptions that no handler takes become a response here. Metrics and the request log get one entry each."""

    def __init__(self, app: ASGIApp, application: Application) -> None:
        self._app = app
        self._application = application
        application.exchange = self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, application = perf_counter(), self._application
        entry = scope[_ENTRY] = application.trie.find(scope)
        request = scope[SCOPE] = application.request_class(scope, receive, send)
        request.path = entry.path
        if application.public_url:
            request.reached_as(application.public_url)
        end_span = None
        if application.begin_span is not None:
            end_span = application.begin_span(request, entry.surface)
        if entry.streamed_body:
            request.pieces = Pieces(receive, scope, stopping=application.streams.ended)
        status, is_head = 0, scope["method"] == "HEAD"

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if end_span is not None:
                    end_span(status)  # a stream may last for hours
                if request.pieces is not None:
                    await request.pieces.drop()
                headers = message["headers"] = list(message.get("headers", ()))
                entry.caching.add(headers, status=status)
                headers.extend(request.notes)
                if entry.cross_origin is not None:
                    headers.extend(entry.cross_origin.response_headers(request))
                headers += NOSNIFF, (b"x-transaction-id", request.transaction_id.encode("ascii"))
                if application.draining or (b"expect" in request.fields and not request.content):
                    # A client that did not get "100 Continue" may or may not send the body, so only a new connection is safe.
                    headers.append((b"connection", b"close"))
            elif is_head and message.get("body"):
                message["body"] = b""
            await send(message)

        try:
            if entry.bound is None or application.dependency_overrides:
                await self._app(scope, receive, answer)
            else:
                try:
                    response = await entry.bound.respond(request)
                    await response(scope, receive, answer)
                except requests.ClientDisconnect:
                    raise
                except Exception as error:
                    if status:
                        raise
                    # FastAPI's inner stack raises it where handlers are found. No frame of its traceback may refer to it then: such
                    # a cycle would keep the body until the next turn of the collector.
                    scope[_ENTRY] = replace(entry, app=_raising([error].pop))
                    await self._app(scope, receive, answer)
        except requests.ClientDisconnect:
            status = 499
            if end_span is not None:
                end_span(status)
        except Exception as error:
            if status or application.has_own_handler:
                raise
            await application.failed(error, scope)(scope, receive, answer)
        finally:
            # A request and its scope name each other. The collector, which runs seldom, would keep the body until its next turn.
            del scope[SCOPE], scope[_ENTRY]
        seconds = perf_counter() - started
        entry.meter.observe(status, seconds)
        if status == 499:
            return
        if request.pieces is not None:
            request.pieces.leave()
        if application.log.wants(scope["method"], status, routine=entry.surface.routine):
            application.log.add(request, status=status, seconds=seconds)


class Application(FastAPI):
    """The application: all that FastAPI's manual says of a `FastAPI` holds, except what `docs/explanation/http.md` names.

    `authorize` returns the caller of a request to a protected route, or raises 401 or 403. `admitted` is called when the caller is
    known, before the body is read. `serves_head` decides if HEAD is answered where a GET route is. `cross_origin` is the rule for
    pages of other origins on surfaces without a rule of their own; without either no page may call. `public_url` is the address at
    which callers reach the server, such as `https://media.example`; without it, it is the host that a request names."""

    def __init__(
        self,
        *,
        services: Services,
        fallback: Surface,
        registry: CollectorRegistry,
        request_log: RequestLog,
        authorize: Callable[[Request, Route], Awaitable[Caller]],
        admitted: Callable[[Request], None] = lambda request: None,
        idempotency: Idempotency | None = None,
        parse_json: JsonParser = parse_json,
        failure_of: FailureOf = failure_of,
        request_class: type[Request] = Request,
        serves_head: Callable[[Route], bool] = lambda route: True,
        large_bodies: LargeBodies = LargeBodies(),  # noqa: B008 - it holds nothing
        cross_origin: CrossOrigin | None = None,
        public_url: str = "",
        about: ApiDescription | None = None,
        begin_span: BeginSpan | None = None,
        **options: Any,
    ) -> None:
        self.services = services
        self.fallback = fallback
        self.authorize = authorize
        self.admitted = admitted
        self.idempotency = idempotency
        self.parse_json = parse_json
        self.failure_of = failure_of
        self.request_class = request_class
        self.serves_head = serves_head
        self.large_bodies = large_bodies
        self.public_url = public_url
        self._cross_origin = cross_origin
        self.log = request_log
        self.begin_span = begin_span
        self.streams = OpenStreams()
        self.unsent = UnsentBodies()
        self.draining = False
        self.exchange: ASGIApp | None = None
        """The middleware `Exchange`, once FastAPI has made its stack of middleware."""
        self._about = about or ApiDescription()
        self._document: Document | None = None
        title = options.setdefault("title", "api")
        super().__init__(
            openapi_url=None,
            description=self._about.introduction,
            license_info=self._about.licence,
            telemetry={"tracing": False, "metrics": False, "logs": False},
            **options,
        )
        self.trie = self.router = TrieRouter(
            self,
            dependency_overrides_provider=self,
            lifespan=options.get("lifespan"),
            route_class=type("OwnRoute", (Route,), {"surface": fallback, "permission_is_required": False}),
        )
        self._metrics = RequestMetrics(registry, prefix=f"{title}_http")
        streams = Gauge(f"{title}_http_streams", "Responses that are sent piece by piece, such as event streams", registry=registry)
        streams.set_function(lambda: self.streams.open)
        for kind in (HTTPException, RequestValidationError):
            self.add_exception_handler(kind, self._handle)
        self.add_middleware(Exchange, application=self)

    @property
    def has_own_handler(self) -> bool:
        """True if the application was given a handler for every exception."""
        return Exception in self.exception_handlers or 500 in self.exception_handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve. FastAPI's outer layers are left out where they would do nothing."""
        has_layers = len(self.user_middleware) > 1 or self.has_own_handler or self.root_path
        if self.exchange is None or has_layers or scope["type"] != "http":
            await super().__call__(scope, receive, send)
        else:
            scope["app"] = self
            await self.exchange(scope, receive, send)

    def entry(self, app: ASGIApp, path: str, surface: Surface, *, method: str = "other", route: APIRoute | None = None) -> Entry:
        meter = self._metrics.meter(surface.name, method, route=path)
        entry = Entry(app, path, surface, meter, self.cross_origin_of(surface), route)
        if route is not None:
            entry.names = tuple(route.param_convertors)
        if isinstance(route, Route):
            entry.streamed_body = route.rules.streamed_body
            if not (route.stored and surface.stored):
                entry.caching = NOT_STORED
            elif route.roles:
                entry.caching = FOR_ITS_CALLER
            if app is route.app and route.signature.is_simple:
                entry.bound = Endpoint(route, self.services, large_bodies=self.large_bodies, parse_json=self.parse_json)
        return entry

    def cross_origin_of(self, surface: Surface) -> CrossOrigin | None:
        """Return the rule for pages of other origins on a surface."""
        return self._cross_origin if surface.cross_origin is None else surface.cross_origin

    def drain(self) -> None:
        """End the streams that do not end by themselves; other requests continue, each as the last of its connection."""
        self.draining = True
        self.streams.end()

    def failed(self, error: Exception, scope: Scope) -> Response:
        """Return the response that an exception means, in the words of the surface."""
        request: Request = scope[SCOPE]
        entry: Entry = scope[_ENTRY]
        if isinstance(error, RequestValidationError):
            error = invalid(error)
        failure = self.failure_of(error)
        if failure.status == 404 and isinstance(entry.route, Route) and entry.route.absent == 204:
            return Response(status_code=204)
        if failure.error is not None:
            extra = {"transactionId": request.transaction_id, "method": request.method, "route": request.path}
            _logger.error("unforeseen", exc_info=error, extra=extra)
        return entry.surface.render(failure, request)

    async def _handle(self, request: requests.Request, error: Exception) -> Response:
        return self.failed(error, request.scope)

    def openapi(self) -> dict[str, Any]:
        """Return FastAPI's description of the routes, with what it cannot know."""
        if not self.openapi_schema:
            self.openapi_schema = corrected(super().openapi(), self.routes, self._about)
        return self.openapi_schema

    async def document(self) -> Document:
        """Return `/openapi.json`. It is made when first asked for, off the event loop: with some 280 routes it takes a moment."""
        if self._document is None:
            self._document = Document(await asyncio.to_thread(lambda: to_json(self.openapi())))
        return self._document


def build(
    routers: Iterable[APIRouter],
    services: Services,
    *,
    fallback: Surface,
    title: str,
    bind: bool = True,
    **options: Any,
) -> Application:
    """Return an application with these routers. `fallback` renders errors of paths outside every surface. Names of metrics begin
    with the name in `title`. With `bind` a missing service is an error here; without, of the first request that needs it."""
    application = Application(services=services, fallback=fallback, title=title, **options)
    for router in routers:
        application.router.routes.extend(router.routes)
    application.trie.prepare()
    if bind:
        application.trie.bind()
    return application

"""The ASGI application: finds the endpoint of a request, sends its response, and turns exceptions into error responses."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol
from urllib.parse import quote

from prometheus_client import CollectorRegistry, Gauge

from api.http.api_description import ApiDescription
from api.http.body import Disconnected, Receive
from api.http.caching import UP_TO_THE_RESPONSE, Caching
from api.http.cross_origin import CrossOrigin
from api.http.docs_page import docs_router
from api.http.documentation import Documentation
from api.http.endpoint import Conventions, Endpoint, Services
from api.http.errors import HttpError, MethodNotAllowed, NoSuchPath
from api.http.incoming import Pieces
from api.http.metrics import Meter, RequestMetrics
from api.http.path_trie import PathTrie
from api.http.preflight import preflight
from api.http.reply import NO_BODY, reply
from api.http.request import Request, Scope
from api.http.response import Response, is_stream
from api.http.router import Router, RouteSpec
from api.http.status_line import REASON
from api.http.streaming import OpenStreams, Send, close_stream
from api.http.surface import Surface
from api.http.unsent import PIECE, UnsentBodies

Hook = Callable[[], Awaitable[None]]
_logger = logging.getLogger("medialedger.http")


class RequestLog(Protocol):
    """The request log: gets an entry for each request."""

    def wants(self, method: str, status: int, *, routine: bool) -> bool: ...

    def add(self, request: Request, *, status: int, seconds: float) -> None: ...

    def flush(self) -> None: ...


class RequestSpan(Protocol):
    """The span of one request in a distributed trace."""

    def end(self, status: int) -> None: ...


class RequestSpans(Protocol):
    """Begins the span of a request, or none. `known`: there is a route for it."""

    def begin(self, request: Request, surface: Surface, *, known: bool) -> RequestSpan | None: ...


@dataclass(frozen=True, slots=True)
class _ErrorEndpoint:
    """Answers where there is no endpoint: 404, or 405 with the methods that exist."""

    error: HttpError
    surface: Surface
    path: str
    meter: Meter
    cross_origin: CrossOrigin | None
    caching: Caching = UP_TO_THE_RESPONSE
    streamed_body = False

    async def respond(self, request: Request, receive: Receive, *, values: list[str]) -> Response:
        raise self.error.with_traceback(None)


@dataclass(frozen=True, slots=True)
class _Preflight:
    """Answers OPTIONS, which needs no key: browsers send none before they know that they may."""

    specs: Mapping[str, RouteSpec]
    surface: Surface
    path: str
    meter: Meter
    cross_origin: CrossOrigin
    caching: Caching = UP_TO_THE_RESPONSE
    streamed_body = False

    async def respond(self, request: Request, receive: Receive, *, values: list[str]) -> Response:
        return preflight(request, self.cross_origin, specs=self.specs)


Answering = Endpoint | _ErrorEndpoint | _Preflight
ByMethod = dict[str, Answering]
"""The endpoints of one path by method; under the empty method the one that answers 405."""


def build(
    routers: Iterable[Router],
    services: Services,
    *,
    conventions: Conventions,
    fallback: Surface,
    registry: CollectorRegistry,
    request_log: RequestLog,
    on_start: Sequence[Hook] = (),
    on_stop: Sequence[Hook] = (),
    title: str,
    version: str,
    about: ApiDescription | None = None,
    spans: RequestSpans | None = None,
) -> Application:
    """Binds every route now, so that a missing service or a route declared twice stops the start, not a request.

    `fallback` renders errors of paths outside every surface. Names of metrics begin with the name in `title`."""
    routers = list(routers)
    documentation = Documentation(routers, title=title, version=version, about=about)
    binder = _Binder(services, conventions=conventions, metrics=RequestMetrics(registry, prefix=f"{title}_http"))
    for router in (*routers, documentation.router(fallback), docs_router(fallback, title=title)):
        for spec in router.specs:
            binder.add(spec)
    streams = OpenStreams()
    Gauge(f"{title}_http_streams", "Responses that are sent piece by piece, such as event streams", registry=registry).set_function(
        lambda: streams.open
    )
    surfaces = {router.surface.prefix: router.surface for router in routers if router.surface.prefix}
    return Application(
        *binder.finish([*surfaces.values(), fallback]),
        streams=streams,
        conventions=conventions,
        request_log=request_log,
        on_start=on_start,
        on_stop=on_stop,
        spans=spans,
    )


class _Binder:
    """Puts endpoints into the trie, and those that answer 404 and 405, so that dispatch has no other case."""

    def __init__(self, services: Services, *, conventions: Conventions, metrics: RequestMetrics) -> None:
        self._services = services
        self._conventions = conventions
        self._metrics = metrics
        self._paths: PathTrie[ByMethod] = PathTrie()
        self._leaves: list[tuple[RouteSpec, ByMethod]] = []

    def add(self, spec: RouteSpec) -> None:
        leaf = self._paths.add(spec.path, {}, any_case=spec.surface.any_case)
        if not leaf:
            self._leaves.append((spec, leaf))
        if spec.method in leaf:
            raise ValueError(f"{spec.method} {spec.path} is declared twice")
        meter = self._metrics.meter(spec.surface.name, spec.method, route=spec.path)
        endpoint = leaf[spec.method] = Endpoint(spec, self._services, conventions=self._conventions, meter=meter)
        if spec.method == "GET" and self._conventions.serves_head(spec):
            leaf["HEAD"] = endpoint
        for segment in spec.surface.never_in_path:
            self._paths.reserve(segment)

    def finish(self, surfaces: Iterable[Surface]) -> tuple[PathTrie[ByMethod], list[tuple[bytes, _ErrorEndpoint]]]:
        for spec, leaf in self._leaves:
            rule = self._conventions.cross_origin_of(spec.surface)
            meter = self._metrics.meter(spec.surface.name, "other", route=spec.path)
            if rule is not None and rule.origins != frozenset():
                specs = {method: one.spec for method, one in leaf.items() if isinstance(one, Endpoint)}
                leaf["OPTIONS"] = _Preflight(specs, spec.surface, spec.path, meter, rule)
            leaf[""] = _ErrorEndpoint(MethodNotAllowed(", ".join(sorted(leaf))), spec.surface, spec.path, meter, rule)
        longest_first = sorted(surfaces, key=lambda surface: -len(surface.prefix))
        return self._paths, [(each.prefix.encode(), self._error(NoSuchPath(), each, path="unknown")) for each in longest_first]

    def _error(self, error: HttpError, surface: Surface, *, path: str) -> _ErrorEndpoint:
        meter = self._metrics.meter(surface.name, "other", route=path)
        return _ErrorEndpoint(error, surface, path, meter, self._conventions.cross_origin_of(surface))


class Application:
    """The ASGI callable."""

    def __init__(
        self,
        paths: PathTrie[ByMethod],
        unknown: Sequence[tuple[bytes, _ErrorEndpoint]],
        *,
        streams: OpenStreams,
        conventions: Conventions,
        request_log: RequestLog,
        on_start: Sequence[Hook],
        on_stop: Sequence[Hook],
        spans: RequestSpans | None = None,
    ) -> None:
        """`unknown` answer for paths that are not in the trie, by prefix; the last one for all others."""
        self._paths = paths
        self._unknown = unknown
        self._conventions = conventions
        self._new_request = conventions.request_class
        self._log = request_log
        self._on_start = on_start
        self._on_stop = on_stop
        self._spans = spans
        self._streams = streams
        self._unsent = UnsentBodies()
        self._draining = False

    def drain(self) -> None:
        """End the streams that do not end by themselves; other requests continue, each as the last of its connection."""
        self._draining = True
        self._streams.end()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = perf_counter()
        endpoint, values = self._find(scope)
        request = self._new_request(scope, dict(scope["headers"]), path=endpoint.path)
        if self._conventions.public_url:
            request.reached_as(self._conventions.public_url)
        span = None if self._spans is None else self._begin_span(request, endpoint)
        if endpoint.streamed_body:
            request.pieces = Pieces(receive, scope, stopping=self._streams.ended)
        try:
            response = await endpoint.respond(request, receive, values=values)
            start, payload = await reply(response, request, caching=endpoint.caching, cross_origin=endpoint.cross_origin)
            large = self._unsent.admit(payload, scope) if payload is not None and len(payload) > PIECE else None
        except Disconnected:
            endpoint.meter.observe(499, perf_counter() - started)
            if span is not None:
                span.end(499)
            return
        except Exception as error:
            response, large = self._error_response(error, request, endpoint=endpoint), None
            start, payload = await reply(response, request, caching=endpoint.caching, cross_origin=endpoint.cross_origin)
        if span is not None:
            span.end(response.status)  # a stream may last for hours
        if request.pieces is not None:
            await request.pieces.drop()
        if self._draining:
            start["headers"].append((b"connection", b"close"))
        if payload is not None and is_stream(response.body):
            await close_stream(response.body)
        if response.reason is not None and (reason := scope.get("extensions", {}).get(REASON)) is not None:
            reason(scope, response.reason)
        await send(start)
        if payload is None:
            await self._streams.send(response, request, receive=receive, send=send)
        elif large is not None:
            await self._unsent.send(large, payload, send)
        else:
            await send({"type": "http.response.body", "body": payload} if payload else NO_BODY)
        if request.pieces is not None:
            request.pieces.leave()
        seconds = perf_counter() - started
        endpoint.meter.observe(response.status, seconds)
        if self._log.wants(request.method, response.status, routine=endpoint.surface.routine):
            self._log.add(request, status=response.status, seconds=seconds)

    def _begin_span(self, request: Request, endpoint: Answering) -> RequestSpan | None:
        assert self._spans is not None
        return self._spans.begin(request, endpoint.surface, known=isinstance(endpoint, Endpoint))

    def _find(self, scope: Scope) -> tuple[Answering, list[str]]:
        raw_path = scope.get("raw_path")
        if raw_path is None:  # optional in ASGI, though every server that we know sends it
            raw_path = scope["raw_path"] = quote(scope["path"]).encode()
        leaf, values = self._paths.find(raw_path)
        if leaf is not None:
            endpoint = leaf.get(scope["method"])
            return (leaf[""], []) if endpoint is None else (endpoint, values)
        for prefix, unknown in self._unknown:
            if raw_path[: len(prefix)].lower() == prefix and raw_path[len(prefix) : len(prefix) + 1] in (b"", b"/"):
                return unknown, []
        return self._unknown[-1][1], []

    def _error_response(self, error: Exception, request: Request, *, endpoint: Answering) -> Response:
        failure = self._conventions.failure_of(error)
        if failure.status == 404 and isinstance(endpoint, Endpoint) and endpoint.spec.absent == 204:
            return Response(204)
        if failure.error is not None:
            extra = {"transactionId": request.transaction_id, "method": request.method, "route": request.path}
            _logger.error("unforeseen", exc_info=error, extra=extra)
        return endpoint.surface.render(failure, request)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Stops what was started, also when a later start fails."""
        await receive()
        try:
            for start in self._on_start:
                await start()
        except Exception as error:
            _logger.exception("the start failed")
            await self._stop()
            await send({"type": "lifespan.startup.failed", "message": f"{type(error).__name__}: {error}"})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _stop(self) -> None:
        for stop in self._on_stop:
            try:
                await stop()
            except Exception:
                _logger.exception("a part could not be stopped cleanly")
        self._log.flush()

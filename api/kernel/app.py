"""The ASGI application: routes bound to their services, one dispatcher for every surface."""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Final
from urllib.parse import quote

from prometheus_client import CollectorRegistry

from api.kernel.answer import Answer, encode, is_stream
from api.kernel.auth import OPEN, WRITE, Authenticate, Gate
from api.kernel.bind import BoundRoute, RefusingRoute, Route, Services
from api.kernel.body import Disconnected, Receive
from api.kernel.call import Call, Scope
from api.kernel.dispatch import Paths
from api.kernel.errors import HttpRefusal, MethodNotAllowed, NoSuchPath, failure_of
from api.kernel.idempotency import Answers, Once
from api.kernel.log import RequestLog
from api.kernel.metrics import RequestMetrics
from api.kernel.openapi import Documentation
from api.kernel.routes import Declaration, Routes
from api.kernel.streaming import OpenStreams, Send
from api.kernel.surface import OPERATIONS, Surface
from domain.kernel.clock import system_clock
from domain.kernel.errors import NotFound

Hook = Callable[[], Awaitable[None]]
Message = dict[str, Any]
ByMethod = dict[str, Route]
"""The routes of one path; under the empty method the one that says 405."""

_BODYLESS: Final = (204, 304)
_NO_BODY: Final = {"type": "http.response.body", "body": b""}
_logger = logging.getLogger("medialedger.http")


def build(
    routes: Iterable[Routes],
    services: Services,
    *,
    authenticate: Authenticate,
    answers: Answers,
    fingerprint: Callable[[bytes], bytes],
    registry: CollectorRegistry | None = None,
    request_log: RequestLog | None = None,
    on_start: Sequence[Hook] = (),
    on_stop: Sequence[Hook] = (),
    title: str = "medialedger",
    version: str = "0",
) -> Application:
    """Binds every declaration now, so that a missing service or a route declared twice stops the start, not a request."""
    routes = list(routes)
    documentation = Documentation(routes, title=title, version=version)
    once, metrics = Once(answers, fingerprint=fingerprint), RequestMetrics(registry or CollectorRegistry())
    binder = _Binder(services, gate=Gate(authenticate), once=once, metrics=metrics)
    for declared in (*routes, documentation.routes()):
        for declaration in declared.declarations:
            binder.add(declaration)
    # A surface at the root does not speak for every unknown path there is: that is for OPERATIONS, with a problem.
    surfaces = {declared.surface.prefix: declared.surface for declared in routes if declared.surface.prefix}
    return Application(
        binder.finish(surfaces.values()),
        request_log=request_log or RequestLog(sys.stderr, clock=system_clock),
        on_start=on_start,
        on_stop=on_stop,
    )


class _Binder:
    """Puts bound routes into the trie, and beside them the ones that say 404 and 405, so that dispatch has no other case."""

    def __init__(self, services: Services, *, gate: Gate, once: Once, metrics: RequestMetrics) -> None:
        self._services = services
        self._gate = gate
        self._once = once
        self._metrics = metrics
        self._paths: Paths[ByMethod] = Paths()
        self._leaves: list[ByMethod] = []

    def add(self, declaration: Declaration) -> None:
        leaf = self._paths.add(declaration.path, {})
        if not leaf:
            self._leaves.append(leaf)
        if declaration.method in leaf:
            raise ValueError(f"{declaration.method} {declaration.path} is declared twice")
        leaf[declaration.method] = self._bind(declaration)
        for segment in declaration.surface.never_in_path:
            self._paths.reserve(segment)

    def finish(self, surfaces: Iterable[Surface]) -> tuple[Paths[ByMethod], list[tuple[bytes, Route]]]:
        for leaf in self._leaves:
            if "GET" in leaf and leaf["GET"].declaration.permission != WRITE:  # the documents have a GET or two that write
                leaf.setdefault("HEAD", leaf["GET"])
            refusal = partial(MethodNotAllowed, ", ".join(sorted(leaf)))
            like = next(iter(leaf.values())).declaration
            leaf[""] = self._refuse(refusal, like.surface, path=like.path)
        longest_first = sorted((*surfaces, OPERATIONS), key=lambda surface: -len(surface.prefix))
        unknown = [(surface.prefix.encode(), self._refuse(NoSuchPath, surface, path="unknown")) for surface in longest_first]
        return self._paths, unknown

    def _bind(self, declaration: Declaration) -> Route:
        meter = self._metrics.meter(declaration.surface.name, declaration.method, route=declaration.path)
        return BoundRoute(declaration, self._services, gate=self._gate, once=self._once, meter=meter)

    def _refuse(self, refusal: Callable[[], HttpRefusal], surface: Surface, *, path: str) -> Route:
        declaration = Declaration("other", path, OPEN, _never, surface, tag="", name="refuse", documented=False)
        meter = self._metrics.meter(surface.name, declaration.method, route=path)
        return RefusingRoute(declaration, refusal, meter=meter)


async def _never(call: Call) -> Answer:
    raise NotImplementedError


class Application:
    """The ASGI callable."""

    def __init__(
        self,
        bound: tuple[Paths[ByMethod], list[tuple[bytes, Route]]],
        *,
        request_log: RequestLog,
        on_start: Sequence[Hook],
        on_stop: Sequence[Hook],
    ) -> None:
        self._paths, self._unknown = bound
        self._log = request_log
        self._on_start = on_start
        self._on_stop = on_stop
        self._streams = OpenStreams()

    def drain(self) -> None:
        """Ends the streams that would never end by themselves; everything else goes on."""
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
        route, values = self._route(scope)
        call = Call(scope, dict(scope["headers"]), path=route.declaration.path)
        try:
            answer = await route.answer(call, receive, values=values)
            start, payload = _messages(answer, call)
        except Disconnected:
            route.meter.observe(499, perf_counter() - started)
            return
        except Exception as error:
            answer = _explain(error, call, declaration=route.declaration)
            start, payload = _messages(answer, call)
        await send(start)
        if payload is None:
            await self._streams.send(answer, call, receive=receive, send=send)
        else:
            await send({"type": "http.response.body", "body": payload} if payload else _NO_BODY)
        seconds = perf_counter() - started
        route.meter.observe(answer.status, seconds)
        if self._log.wants(call.method, answer.status):
            self._log.add(call, status=answer.status, seconds=seconds)

    def _route(self, scope: Scope) -> tuple[Route, list[str]]:
        raw_path = scope.get("raw_path")
        if raw_path is None:  # optional in ASGI, though every server that we know sends it
            raw_path = scope["raw_path"] = quote(scope["path"]).encode()
        leaf, values = self._paths.find(raw_path)
        if leaf is not None:
            route = leaf.get(scope["method"])
            return (leaf[""], []) if route is None else (route, values)
        for prefix, unknown in self._unknown:
            if raw_path.startswith(prefix) and raw_path[len(prefix) : len(prefix) + 1] in (b"", b"/"):
                return unknown, []
        return self._unknown[-1][1], []

    async def _live(self, receive: Receive, send: Send) -> None:
        """What was started is stopped, also when a later start fails."""
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


def _messages(answer: Answer, call: Call) -> tuple[Message, bytes | None]:
    """The head of the response and its body; `None` for a body that is streamed."""
    headers = answer.header_pairs()
    headers.append((b"x-transaction-id", call.transaction_id.encode("ascii")))
    payload: bytes | None = None
    if not is_stream(answer.body):
        payload = encode(answer.body)
        if answer.status not in _BODYLESS:
            headers.append((b"content-length", b"%d" % len(payload)))
        if call.method == "HEAD" or answer.status in _BODYLESS:
            payload = b""
    elif call.method == "HEAD":
        payload = b""
    if b"expect" in call.headers and not call.body:
        # Nobody was told to go on, so it is open whether the body follows: only a new connection is sure to be in step.
        headers.append((b"connection", b"close"))
    return {"type": "http.response.start", "status": answer.status, "headers": headers}, payload


def _explain(error: Exception, call: Call, *, declaration: Declaration) -> Answer:
    if declaration.absent == 204 and isinstance(error, NotFound):
        return Answer(204)
    failure = failure_of(error)
    if failure.error is not None:
        extra = {"transactionId": call.transaction_id, "method": call.method, "route": call.path}
        _logger.error("unforeseen", exc_info=error, extra=extra)
    return declaration.surface.render(failure, call)

"""The response to OPTIONS: what a page of another origin may send to a path, which its browser asks before it sends it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from api.http.cross_origin import CrossOrigin
from api.http.errors import Forbidden
from api.http.request import Request
from api.http.response import Response
from api.http.router import RouteSpec

_KEY_HEADERS: Final = ("api-key", "authorization", "client", "x-actor", "x-auth-key")
_TRACE_HEADERS: Final = ("traceparent", "tracestate", "x-request-id", "x-transaction-id")


def preflight(request: Request, rule: CrossOrigin, *, specs: Mapping[str, RouteSpec]) -> Response:
    """`specs` are the routes of the path by method. Raises `Forbidden` for a page of an origin that is not allowed; a request
    without an Origin asks for all methods, whoever may send them."""
    asked = request.header("access-control-request-method")
    if asked is None or b"origin" not in request.headers:
        return Response(204, headers=(("allow", ", ".join(sorted({*specs, "OPTIONS"}))),))
    if rule.allowed(request.headers[b"origin"]) is None:
        raise Forbidden("Pages of this origin may not call this server.")
    spec = specs.get(asked)
    headers = (
        ("access-control-allow-methods", rule.method_names(specs)),
        ("access-control-allow-headers", ", ".join(sorted({*_headers_of(spec), *rule.request_headers}))),
        ("access-control-max-age", str(rule.max_age)),
        ("vary", "access-control-request-method"),
    )
    return Response(204, headers=headers)


def _headers_of(spec: RouteSpec | None) -> Iterable[str]:
    """What the route reads. Open routes of the engine and of media read a key too, where one comes."""
    yield from _TRACE_HEADERS
    if spec is None:
        return
    yield from _KEY_HEADERS
    if spec.surface.unknown_names != "ignored":
        yield "prefer"
    if spec.method == "GET":
        yield from ("if-none-match", "last-event-id")
    else:
        yield "content-type"
    if spec.if_match:
        yield "if-match"
    if spec.keeps_answer:
        yield "idempotency-key"

"""The response to OPTIONS: what a page of another origin may send to a path, which its browser asks before it sends it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from api.http.cross_origin import CrossOrigin
from api.http.errors import Forbidden
from api.http.request import Request
from api.http.response import Response
from api.http.routing import Route

_KEY_HEADERS: Final = ("api-key", "authorization", "client", "x-actor", "x-auth-key")
_TRACE_HEADERS: Final = ("traceparent", "tracestate", "x-request-id", "x-transaction-id")


def preflight(request: Request, rule: CrossOrigin, *, routes: Mapping[str, Route]) -> Response:
    """`routes` are the routes of the path by method. Raises `Forbidden` for a page of an origin that is not allowed; a request
    without an Origin asks for all methods, whoever may send them."""
    asked = request.header("access-control-request-method")
    if asked is None or b"origin" not in request.fields:
        return Response(status_code=204, headers=(("allow", ", ".join(sorted({*routes, "OPTIONS"}))),))
    if rule.allowed(request.fields[b"origin"]) is None:
        raise Forbidden("Pages of this origin may not call this server.")
    route = routes.get(asked)
    headers = (
        ("access-control-allow-methods", rule.method_names(routes)),
        ("access-control-allow-headers", ", ".join(sorted({*_headers_of(route), *rule.request_headers}))),
        ("access-control-max-age", str(rule.max_age)),
        ("vary", "access-control-request-method"),
    )
    return Response(status_code=204, headers=headers)


def _headers_of(route: Route | None) -> Iterable[str]:
    """What the route reads. Open routes of the engine and of media read a key too, where one comes."""
    yield from _TRACE_HEADERS
    if route is None:
        return
    yield from _KEY_HEADERS
    if route.surface.unknown_names != "ignored":
        yield "prefer"
    if route.method == "GET":
        yield from ("if-none-match", "last-event-id")
    else:
        yield "content-type"
    if route.if_match:
        yield "if-match"
    if route.keeps_answer:
        yield "idempotency-key"

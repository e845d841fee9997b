"""The span of a request. It continues the trace of the caller, and the causes of the request's events continue it."""

from __future__ import annotations

from collections.abc import Callable
from re import compile as regex
from typing import Final

from api.http.headers import whole
from api.http.request import Request
from api.http.surface import Surface
from api.kernel.surfaces import OPERATIONS
from projections.kernel.tracing import Tracer

_PARENT: Final = regex(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]*)?")
_LONGEST: Final = 512


def trace_parent(header: bytes) -> str | None:
    """Return the header `traceparent` of W3C Trace Context as version 00 writes it, or None where it is invalid.

    An invalid header is no error: tracing never stops a request. A later version may have more behind its four fields."""
    match = None if len(header) > _LONGEST else _PARENT.fullmatch(header)
    if match is None or match[1] == b"ff" or match[2] == b"0" * 32 or match[3] == b"0" * 16:
        return None
    if match[1] == b"00" and match[5] is not None:
        return None
    return b"-".join((b"00", match[2], match[3], match[4])).decode("ascii")


def sent_trace_parent(request: Request) -> str | None:
    """Return the trace that the caller names as the parent of the request."""
    if b"traceparent" not in request.fields:
        return None
    return trace_parent(whole(request.scope["headers"], b"traceparent"))


class RequestSpans:
    """Begins a span for each request except probes, metrics and segments of streams. The span holds only the route of its
    address."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def __call__(self, request: Request, surface: Surface) -> Callable[[int], None] | None:
        if surface.routine or surface.name == OPERATIONS.name:
            return None
        has_route = request.scope.get("route") is not None  # there is none for an unknown path or method
        method = request.method if has_route else "_OTHER"
        attributes = {
            "http.request.method": method,
            "url.scheme": str(request.scope.get("scheme", "http")),
            "medialedger.transaction_id": request.transaction_id,
        }
        if has_route:
            attributes["http.route"] = request.path
        name = f"{method} {request.path}" if has_route else "HTTP"
        opened = self._tracer.span(name, kind="server", parent=sent_trace_parent(request), attributes=attributes)
        span = opened.__enter__()
        request.trace_parent = span.child_context(None)

        def end(status: int) -> None:
            span.note("http.response.status_code", status)
            if status >= 500:
                span.failed(str(status))
            opened.__exit__(None, None, None)

        return end

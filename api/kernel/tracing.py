"""The span of a request. It continues the trace of the caller, and the causes of the request's events continue it."""

from __future__ import annotations

from contextlib import AbstractContextManager

from api.http.app import RequestSpan
from api.http.header_lists import whole
from api.http.request import Request
from api.http.surface import Surface
from api.http.trace_context import trace_parent
from api.kernel.surfaces import OPERATIONS
from projections.kernel.tracing import Span, Tracer


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

    def begin(self, request: Request, surface: Surface, *, known: bool) -> RequestSpan | None:
        if surface.routine or surface.name == OPERATIONS.name:
            return None
        method = request.method if known else "_OTHER"
        attributes = {
            "http.request.method": method,
            "url.scheme": str(request.scope.get("scheme", "http")),
            "medialedger.transaction_id": request.transaction_id,
        }
        if known:
            attributes["http.route"] = request.path
        name = f"{method} {request.path}" if known else "HTTP"
        opened = self._tracer.span(name, kind="server", parent=sent_trace_parent(request), attributes=attributes)
        span = _Opened(opened)
        request.trace_parent = span.context
        return span


class _Opened:
    def __init__(self, opened: AbstractContextManager[Span]) -> None:
        self._opened = opened
        self._span = opened.__enter__()
        self.context = self._span.child_context(None)

    def end(self, status: int) -> None:
        self._span.note("http.response.status_code", status)
        if status >= 500:
            self._span.failed(str(status))
        self._opened.__exit__(None, None, None)

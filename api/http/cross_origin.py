"""Cross-origin resource sharing (CORS): which pages of other origins a browser lets read responses, and what they may send.

Starlette's middleware has one rule for an application. Here each surface has its own, a preflight names the methods of its path,
and a page of another origin is refused. Credentials that a browser sends by itself, such as cookies, are never allowed: a page of
another origin brings an API key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from api.http.errors import Forbidden
from api.http.request import Request
from api.http.response import Response

_EXPOSED: Final = (
    *("etag", "idempotency-replayed", "link", "location", "preference-applied", "retry-after", "warning", "x-transaction-id"),
)
_TEN_MINUTES: Final = 600


@dataclass(frozen=True, slots=True)
class CrossOrigin:
    """The rule of a surface."""

    origins: frozenset[bytes] | None = frozenset()
    """The origins that may call, compared exactly; `None`: every origin."""
    methods: frozenset[str] | None = None
    """The allowed methods among those that a path answers; `None`: all."""
    request_headers: tuple[str, ...] = ()
    """Headers that are allowed in addition to those that the route reads."""
    exposed: tuple[str, ...] = _EXPOSED
    max_age: int = _TEN_MINUTES
    embedded: bool = False
    """True if pages of other origins may also embed the responses, as they embed media."""

    def allowed(self, origin: bytes | None) -> bytes | None:
        """Return the value of Access-Control-Allow-Origin, or None, which leaves the header out."""
        if self.origins is None:
            return b"*"
        return origin if origin is not None and origin in self.origins else None

    def response_headers(self, request: Request) -> Iterable[tuple[bytes, bytes]]:
        """Yield the headers of every response, errors too. Where it depends on the origin, caches learn so from Vary."""
        allowed = self.allowed(request.fields.get(b"origin"))
        if self.origins:
            yield b"vary", b"origin"
        if allowed is not None:
            yield b"access-control-allow-origin", allowed
            yield b"access-control-expose-headers", ", ".join(self.exposed).encode()
        if self.embedded:
            yield b"cross-origin-resource-policy", b"cross-origin"

    def preflight(self, request: Request, headers: dict[str, set[str]]) -> Response:
        """Return the response to OPTIONS, for a path whose methods read these headers. Raises `Forbidden` for other origins.

        A request without an Origin asks for all methods, whoever may send them."""
        asked = request.header("access-control-request-method")
        if asked is None or b"origin" not in request.fields:
            return Response(status_code=204, headers=(("allow", ", ".join(sorted({*headers, "OPTIONS"}))),))
        if self.allowed(request.fields[b"origin"]) is None:
            raise Forbidden("Pages of this origin may not call this server.")
        methods = sorted(method for method in headers if self.methods is None or method in self.methods)
        allowed = (
            ("access-control-allow-methods", ", ".join(methods)),
            ("access-control-allow-headers", ", ".join(sorted({*headers.get(asked, TRACE_HEADERS), *self.request_headers}))),
            ("access-control-max-age", str(self.max_age)),
            ("vary", "access-control-request-method"),
        )
        return Response(status_code=204, headers=allowed)


NOBODY: Final = CrossOrigin()
TRACE_HEADERS: Final = ("traceparent", "tracestate", "x-request-id", "x-transaction-id")

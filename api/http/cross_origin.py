"""Cross-origin resource sharing (CORS): which pages of other origins a browser lets read responses, and what they may send.

Credentials that a browser sends by itself, such as cookies, are never allowed: a page of another origin brings an API key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from api.http.request import Request

Pairs = tuple[tuple[bytes, bytes], ...]

_EXPOSED: Final = (
    *("etag", "idempotency-replayed", "link", "location", "preference-applied", "retry-after", "warning", "x-transaction-id"),
)
_TEN_MINUTES: Final = 600


@dataclass(frozen=True, slots=True)
class CrossOrigin:
    """The rule of a surface. `origins` are compared exactly; `None`: every origin. `methods` are those that are allowed of the ones
    that a path answers; `None`: all. `request_headers` are allowed beside the usual ones. `embedded`: pages of other origins may
    also embed the responses, as they embed media."""

    origins: frozenset[bytes] | None = frozenset()
    methods: frozenset[str] | None = None
    request_headers: tuple[str, ...] = ()
    exposed: tuple[str, ...] = _EXPOSED
    max_age: int = _TEN_MINUTES
    embedded: bool = False

    def allowed(self, origin: bytes | None) -> bytes | None:
        """The value of Access-Control-Allow-Origin; `None`: the header is left out."""
        if self.origins is None:
            return b"*"
        return origin if origin is not None and origin in self.origins else None

    def response_headers(self, request: Request) -> Pairs:
        """Of every response, errors too. Where it depends on the origin, caches are told so."""
        allowed = self.allowed(request.fields.get(b"origin"))
        pairs: Pairs = () if self.origins is None or not self.origins else ((b"vary", b"origin"),)
        if allowed is not None:
            exposed = ", ".join(self.exposed).encode()
            pairs += ((b"access-control-allow-origin", allowed), (b"access-control-expose-headers", exposed))
        return (*pairs, (b"cross-origin-resource-policy", b"cross-origin")) if self.embedded else pairs

    def method_names(self, methods: Iterable[str]) -> str:
        return ", ".join(sorted(method for method in methods if self.methods is None or method in self.methods))


NOBODY: Final = CrossOrigin()

"""One request as an endpoint sees it."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from api.kernel.answer import PendingAnswer
from api.kernel.auth import ANONYMOUS, Caller
from domain.kernel.cause import Cause
from domain.kernel.errors import Malformed
from domain.kernel.ids import new_id

Scope = MutableMapping[str, Any]


class Call:
    """Made for every request, so it computes on demand what not every endpoint asks for. Holds the headers, so never log it."""

    __slots__ = (
        "_cause",
        "_names",
        "_transaction_error",
        "_values",
        "body",
        "caller",
        "headers",
        "idempotency",
        "method",
        "path",
        "scope",
        "transaction_id",
    )

    def __init__(self, scope: Scope, headers: dict[bytes, bytes], *, path: str) -> None:
        self.scope = scope
        self.headers = headers
        """Lower-case names; of a repeated header the last."""
        self.method: str = scope["method"]
        self.path = path
        """The route's template, such as `/api/event/{id}`: safe to log, unlike what was sent."""
        self.caller: Caller = ANONYMOUS
        self.body: bytes = b""
        """As it was sent; empty when there was none or the route takes none."""
        self.idempotency: PendingAnswer | None = None
        self._cause: Cause | None = None
        self._names: tuple[str, ...] = ()
        self._values: list[str] = []
        self._transaction_error = False
        sent = headers.get(b"x-transaction-id")
        if sent is None:
            self.transaction_id = str(new_id())
        elif is_token(sent, 128):
            self.transaction_id = sent.decode("ascii")
        else:
            self.transaction_id = str(new_id())
            self._transaction_error = True

    def header(self, name: str) -> str | None:
        value = self.headers.get(name.lower().encode("ascii"))
        return None if value is None else value.decode("latin-1")

    @property
    def params(self) -> Mapping[str, str]:
        """The path's segments by the template's names, percent-decoded, not converted."""
        return dict(zip(self._names, self._values, strict=True))

    @property
    def cause(self) -> Cause:
        """Who, and under which correlation id: what every domain event of this request carries. One command id per request."""
        if self._cause is None:
            self._cause = Cause.by(self.caller.name, correlation_id=self.transaction_id)
        return self._cause

    @property
    def base_url(self) -> str:
        """`https://media.example:8443`, as the caller reached us: for the absolute links that the documents show."""
        host = self.header("host")
        if not host or not (host.isascii() and host.isprintable()):
            name, port = self.scope.get("server") or ("localhost", None)
            host = name if port is None else f"{name}:{port}"
        return f"{self.scope.get('scheme', 'http')}://{host}"

    @property
    def if_match(self) -> frozenset[int] | None:
        """The versions that the caller insists on; `None` when it does not, or says `*`: any version, as long as there is one.

        A tag that we never gave out matches nothing, so it is left out; an empty set is a certain 412."""
        if b"if-match" not in self.headers:
            return None
        tags = [tag.strip() for name, value in self.scope["headers"] if name == b"if-match" for tag in value.split(b",")]
        if b"*" in tags:
            return None
        inner = (tag[1:-1] for tag in tags if len(tag) > 2 and tag.startswith(b'"') and tag.endswith(b'"'))
        return frozenset(int(digits) for digits in inner if digits.isdigit() and len(digits) < 20)

    def place(self, names: tuple[str, ...], *, values: list[str]) -> None:
        self._names, self._values = names, values

    def check(self) -> None:
        """Only now, because 401, 403, 413 and 415 come first."""
        if self._transaction_error:
            raise Malformed.at("X-Transaction-ID", "must be 1 to 128 printable ASCII characters")


def is_token(value: bytes, limit: int) -> bool:
    return 0 < len(value) <= limit and value.isascii() and value.decode("ascii").isprintable()

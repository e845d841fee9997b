"""The request that an endpoint gets."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from re import compile as regex
from typing import Any, Final
from uuid import uuid4

from api.http.auth import ANONYMOUS, Caller
from api.http.errors import BadRequest
from api.http.incoming import Pieces

Scope = MutableMapping[str, Any]
_VERSION: Final = regex(rb"([0-9]{1,19})(?:[-.][0-9a-f]{8})?")
IDEMPOTENCY_KEY: Final = b"idempotency-key"
IF_MATCH: Final = b"if-match"
IF_NONE_MATCH: Final = b"if-none-match"
PREFER: Final = b"prefer"
Notes = tuple[tuple[bytes, bytes], ...]


class Request:
    """One HTTP request. Members that few endpoints need are computed on demand. Holds the headers, so never log it."""

    __slots__ = (
        "_base_url",
        "_names",
        "_transaction_error",
        "_values",
        "body",
        "caller",
        "headers",
        "method",
        "notes",
        "path",
        "pieces",
        "scope",
        "trace_parent",
        "transaction_id",
    )

    def __init__(self, scope: Scope, headers: dict[bytes, bytes], *, path: str) -> None:
        self.scope = scope
        self.headers = headers
        """Lower-case names; of a repeated header the last."""
        self.method: str = scope["method"]
        self.path = path
        """The route's template, such as `/api/event/{id}`: safe to log, unlike the sent path."""
        self.caller: Caller = ANONYMOUS
        self.body: bytes = b""
        """The sent bytes; empty when there were none or the route takes no body."""
        self.pieces: Pieces | None = None
        """The body as it comes, where the route streams it."""
        self._base_url = ""
        self._names: tuple[str, ...] = ()
        self._values: list[str] = []
        self._transaction_error = False
        self.trace_parent: str | None = None
        """The W3C trace context of the request's own span, where there is one."""
        self.notes: Notes = ()
        """Headers of the response that say how the request was understood."""
        sent = headers.get(b"x-transaction-id")
        if sent is None:
            sent = headers.get(b"x-request-id")
            self.transaction_id = sent.decode("ascii") if sent and is_token(sent, 128) else self.new_transaction_id()
        elif is_token(sent, 128):
            self.transaction_id = sent.decode("ascii")
        else:
            self.transaction_id = self.new_transaction_id()
            self._transaction_error = True

    def new_transaction_id(self) -> str:
        """For a request that brings none, or an invalid one."""
        return str(uuid4())

    def header(self, name: str) -> str | None:
        value = self.headers.get(name.lower().encode("ascii"))
        return None if value is None else value.decode("latin-1")

    @property
    def params(self) -> Mapping[str, str]:
        """The path's segments by the template's names, percent-decoded, not converted."""
        return dict(zip(self._names, self._values, strict=True))

    @property
    def base_url(self) -> str:
        """`https://media.example:8443`, as the caller reached the server: for absolute links in responses."""
        if self._base_url:
            return self._base_url
        host = self.header("host")
        if not host:
            name, port = self.scope.get("server") or ("localhost", None)
            host = name if port is None else f"{name}:{port}"
        return f"{self.scope.get('scheme', 'http')}://{host}"

    def reached_as(self, base_url: str) -> None:
        """For a server with a public address. A repeated request is answered with the links that the first one got."""
        self._base_url = base_url

    @property
    def if_match(self) -> frozenset[int] | None:
        """The versions of `If-Match`; `None` without the header, where the route ignores it, or for `*`: any version.

        A tag may have a checksum behind the version. A tag that is not one of ours matches nothing, so it is left
        out; an empty set always gives 412."""
        if IF_MATCH not in self.headers:
            return None
        tags = [tag.strip() for name, value in self.scope["headers"] if name == IF_MATCH for tag in value.split(b",")]
        if b"*" in tags:
            return None
        inner = (tag[1:-1] for tag in tags if len(tag) > 2 and tag.startswith(b'"') and tag.endswith(b'"'))
        found = (_VERSION.fullmatch(tag) for tag in inner)
        return frozenset(int(match[1]) for match in found if match is not None)

    def set_params(self, names: tuple[str, ...], *, values: list[str]) -> None:
        self._names, self._values = names, values

    def check_transaction_id(self) -> None:
        """Called late, because 401, 403, 413 and 415 come first."""
        if self._transaction_error:
            raise BadRequest.at("X-Transaction-ID", "must be 1 to 128 printable ASCII characters")


def is_token(value: bytes, limit: int) -> bool:
    return 0 < len(value) <= limit and value.isascii() and value.decode("ascii").isprintable()

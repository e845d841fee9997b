"""The request that an endpoint gets: FastAPI's, with the caller, the transaction id and the body within its limit."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from re import compile as regex
from typing import Any, Final
from uuid import uuid4

from starlette import requests
from starlette.datastructures import QueryParams
from starlette.types import Receive, Send

from api.http.body import read_body
from api.http.errors import BadRequest
from api.http.incoming import Pieces

Scope = MutableMapping[str, Any]
SCOPE: Final = "medialedger.request"
"""The key of the request in the scope of its exchange."""
_VERSION: Final = regex(rb"([0-9]{1,19})(?:[-.][0-9a-f]{8})?")
IDEMPOTENCY_KEY: Final = b"idempotency-key"
IF_MATCH: Final = b"if-match"
IF_NONE_MATCH: Final = b"if-none-match"
PREFER: Final = b"prefer"


@dataclass(frozen=True, slots=True)
class Caller:
    """The client that a request came from. It holds no key."""

    name: str
    roles: frozenset[str]
    trusted: bool = False
    """True if the client may say for whom it acts."""
    end_user: str | None = None
    """The person or system that the client acts for."""
    person: bool = False
    """True if the request came with a session of a browser."""


ANONYMOUS: Final = Caller("anonymous", frozenset())


class Request(requests.Request):
    """A request of HTTP. It has an API key in its headers, so it is never logged."""

    path: str = ""
    """The route's template, such as `/api/event/{id}`: safe to log, unlike the sent path."""
    caller: Caller = ANONYMOUS
    content: bytes = b""
    """The sent bytes of the body; empty when there were none or the route takes no body."""
    pieces: Pieces | None = None
    """The body as it comes, where the route streams it."""
    body_limit: int = 0
    query_names: Mapping[str, str] = {}
    """The documented names of parameters by their lower-case names, where FastAPI reads the query."""
    query_data: Mapping[str, Any] | None = None
    """The values of the query by documented names, where FastAPI reads the query as one of our models."""
    parse: Callable[[], Any] | None = None
    """Returns what the body means, where FastAPI reads it."""
    trace_parent: str | None = None
    """The W3C trace context of the request's own span, where there is one."""
    notes: tuple[tuple[bytes, bytes], ...] = ()
    """Headers of the response about names and preferences in the request."""
    _root_url = ""
    _body_is_read = False
    _transaction_error = False

    def __init__(self, scope: Scope, receive: Receive = requests.empty_receive, send: Send = requests.empty_send) -> None:
        super().__init__(scope, receive, send)
        self.fields = fields = dict(scope["headers"])
        """The headers by their lower-case names; of a repeated header the last."""
        sent = fields.get(b"x-transaction-id")
        if sent is None:
            sent = fields.get(b"x-request-id")
            self.transaction_id = sent.decode("ascii") if sent and is_token(sent, 128) else self.new_transaction_id()
        elif is_token(sent, 128):
            self.transaction_id = sent.decode("ascii")
        else:
            self.transaction_id = self.new_transaction_id()
            self._transaction_error = True

    def new_transaction_id(self) -> str:
        """Return an id for a request that brings none, or an invalid one."""
        return str(uuid4())

    def header(self, name: str) -> str | None:
        """Return a header's value; of a repeated header the last."""
        value = self.fields.get(name.lower().encode("ascii"))
        return None if value is None else value.decode("latin-1")

    async def read(self) -> None:
        """Read the body into `content`. Raises `BodyTooLarge` and `ClientDisconnect`."""
        if not self._body_is_read:
            self.content = await read_body(self.receive, limit=self.body_limit)
            self._body_is_read = True

    async def body(self) -> bytes:
        """Return the whole body, within the limit of the route's surface."""
        await self.read()
        return self.content

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the body; piece by piece, and without a limit, where the route streams it."""
        if self.pieces is not None:
            async for piece in self.pieces:
                yield piece
        else:
            yield await self.body()
        yield b""

    async def json(self) -> Any:
        """Parse the body as strictly as the application does. Raises `BadRequest`."""
        content = await self.body()
        return self.app.parse_json(content, where="body") if self.parse is None else self.parse()

    @property
    def query_params(self) -> QueryParams:
        """The parameters of the query under their documented names, whatever the case in which they were sent."""
        if self.query_data is not None:
            return QueryParams([(name, each) for name, value in self.query_data.items() for each in _all(value)])
        sent = QueryParams(self.scope["query_string"]).multi_items()
        return QueryParams([(self.query_names.get(name.lower(), name), value) for name, value in sent])

    @property
    def root_url(self) -> str:
        """`https://media.example:8443`, as the caller reached the server: for absolute links in responses."""
        if self._root_url:
            return self._root_url
        host = self.header("host")
        if not host:
            name, port = self.scope.get("server") or ("localhost", None)
            host = name if port is None else f"{name}:{port}"
        return f"{self.scope.get('scheme', 'http')}://{host}"

    def reached_as(self, root_url: str) -> None:
        """Set the address of a server that has a public one. A repeated request is answered with the links of the first one."""
        self._root_url = root_url

    @property
    def if_match(self) -> frozenset[int] | None:
        """The versions of `If-Match`; `None` without the header, where the route ignores it, or for `*`: any version.

        A tag may have a checksum after the version. A tag that is not one of ours matches nothing, so it is left
        out; an empty set always gives 412."""
        if IF_MATCH not in self.fields:
            return None
        tags = [tag.strip() for name, value in self.scope["headers"] if name == IF_MATCH for tag in value.split(b",")]
        if b"*" in tags:
            return None
        inner = (tag[1:-1] for tag in tags if len(tag) > 2 and tag.startswith(b'"') and tag.endswith(b'"'))
        matches = (_VERSION.fullmatch(tag) for tag in inner)
        return frozenset(int(match[1]) for match in matches if match is not None)

    def check_transaction_id(self) -> None:
        """Raise `BadRequest` for an invalid transaction id. It is called late, because 401, 403, 413 and 415 come first."""
        if self._transaction_error:
            raise BadRequest.at("X-Transaction-ID", "must be 1 to 128 printable ASCII characters")


def _all(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def is_token(value: bytes, limit: int) -> bool:
    return 0 < len(value) <= limit and value.isascii() and value.decode("ascii").isprintable()

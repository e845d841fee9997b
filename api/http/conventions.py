"""What an application decides for all its routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Protocol

from api.http.auth import Authenticate, Authorizer, Sessions
from api.http.cross_origin import CrossOrigin
from api.http.errors import FailureOf, failure_of
from api.http.large_bodies import LargeBodies
from api.http.parsing import JsonParser, parse_json
from api.http.request import Request
from api.http.response import Response
from api.http.routing import Respond, Route
from api.http.surface import Surface

Services = Mapping[Any, object]


class MissingServices(LookupError):
    """Raised when endpoints need services that are not provided: the application cannot start."""


class Idempotency(Protocol):
    """Handles a request with an Idempotency-Key. `act` carries the request out; it is called at most once."""

    async def run(self, request: Any, act: Callable[[], Awaitable[Any]], *, respond: Respond, status: int) -> Response: ...


@dataclass(frozen=True, slots=True)
class Conventions:
    """The settings of an application for all its endpoints."""

    authenticate: Authenticate
    sessions: Sessions | None = None
    idempotency: Idempotency | None = None
    parse_json: JsonParser = parse_json
    failure_of: FailureOf = failure_of
    request_class: type[Request] = Request
    admitted: Callable[[Request], None] = lambda request: None
    """Called when the caller of a request is known, before its body is read."""
    serves_head: Callable[[Route], bool] = lambda route: True
    """Tells whether HEAD is answered where GET is."""
    large_bodies: LargeBodies = field(default_factory=LargeBodies)
    public_url: str = ""
    """`https://media.example`: where callers reach the server; empty: at the host that a request names."""
    cross_origin: CrossOrigin | None = None
    """The rule for pages of other origins, on surfaces without one of their own; `None`: none may call."""

    authorizers: Mapping[tuple[bool, bool], Authorizer] = field(init=False, repr=False, default_factory=dict)
    """By two flags: a session of a browser counts, and the request changes something."""

    def __post_init__(self) -> None:
        pairs = product((False, True), repeat=2)
        made = {(yes, no): Authorizer(self.authenticate, sessions=self.sessions if yes else None, changes=no) for yes, no in pairs}
        object.__setattr__(self, "authorizers", made)

    def cross_origin_of(self, surface: Surface) -> CrossOrigin | None:
        return self.cross_origin if surface.cross_origin is None else surface.cross_origin

"""A route bound to its services: the checks of a request in their fixed order, then the function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from api.http.auth import Authenticate, Authorizer, Sessions
from api.http.binding import parsers, read_signature, responder_services
from api.http.body import Receive, check_length, read_body
from api.http.caching import caching_of
from api.http.cross_origin import CrossOrigin
from api.http.errors import BadRequest, FailureOf, FieldError, failure_of
from api.http.header_lists import preference, whole
from api.http.large_bodies import LargeBodies, is_large
from api.http.metrics import Meter
from api.http.parsing import JsonParser, parse_json
from api.http.request import IDEMPOTENCY_KEY, IF_MATCH, PREFER, Notes, Request
from api.http.response import Response
from api.http.router import WRITES, Respond, RouteSpec
from api.http.surface import Surface
from api.http.unknown_names import MOST, UnknownName, names_of_query, unknown_in_names, warning

Services = Mapping[Any, object]
_STRICT: Final[Notes] = ((b"preference-applied", b"handling=strict"), (b"vary", b"prefer"))


class MissingServices(LookupError):
    """Endpoints need services that are not provided: the application cannot start."""


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
    serves_head: Callable[[RouteSpec], bool] = lambda spec: True
    """Whether HEAD is answered where GET is."""
    large_bodies: LargeBodies = field(default_factory=LargeBodies)
    public_url: str = ""
    """`https://media.example`: where callers reach the server; empty: at the host that a request names."""
    cross_origin: CrossOrigin | None = None
    """The rule for pages of other origins, on surfaces without one of their own; `None`: none may call."""

    def cross_origin_of(self, surface: Surface) -> CrossOrigin | None:
        return self.cross_origin if surface.cross_origin is None else surface.cross_origin


class Endpoint:
    """Serves one method at one path. All look-ups that do not depend on the request are done at the start."""

    __slots__ = (
        "_admitted",
        "_authorizer",
        "_body",
        "_caller_at",
        "_converters",
        "_function",
        "_idempotency",
        "_large_bodies",
        "_names",
        "_query",
        "_respond",
        "_roles",
        "_writes",
        "caching",
        "cross_origin",
        "meter",
        "spec",
        "streamed_body",
        "surface",
    )

    def __init__(self, spec: RouteSpec, services: Services, *, conventions: Conventions, meter: Meter) -> None:
        parsed = parsers(spec, conventions.parse_json)
        self.spec = spec
        self.surface = spec.surface
        self.streamed_body = spec.streamed_body
        self.meter = meter
        self.caching = caching_of(protected=spec.permission is not None, stored=spec.stored)
        self.cross_origin = conventions.cross_origin_of(spec.surface)
        self._authorizer = Authorizer(
            conventions.authenticate,
            sessions=conventions.sessions if spec.surface.sessions else None,
            changes=spec.method in WRITES or spec.respond is not None,
        )
        self._admitted = conventions.admitted
        self._roles = spec.permission
        self._idempotency = conventions.idempotency if spec.keeps_answer else None
        self._large_bodies = conventions.large_bodies
        self._names = parsed.names
        self._caller_at = next((at for at, name in enumerate(self._names) if name == spec.surface.caller_in_path), None)
        self._converters = parsed.converters
        self._query = parsed.query
        self._body = parsed.body
        self._writes = spec.method in WRITES
        self._function = partial(spec.endpoint, **_provided(spec, read_signature(spec).services, services=services))
        self._respond = _responder(spec, services)

    @property
    def path(self) -> str:
        return self.spec.path

    async def respond(self, request: Request, receive: Receive, *, values: list[str]) -> Response:
        """401, 403, 413, 415, 400, in this order; the function adds 404, 412 and 409 by raising."""
        headers, surface = request.headers, self.surface
        if values:
            request.set_params(self._names, values=values)  # at once: an error may name what the path names
        if self._roles is not None:
            request.caller = await self._authorizer.admit(
                request,
                roles=self._roles,
                client_required=surface.client_required,
                named=None if self._caller_at is None else values[self._caller_at],
                quoted=surface.quoted_keys,
                bearer=surface.bearer_keys,
            )
        self._admitted(request)
        if self._writes and not self.streamed_body:
            check_length(headers, limit=surface.body_limit)
        if not self.spec.if_match:
            headers.pop(IF_MATCH, None)
        idempotency = self._idempotency if IDEMPOTENCY_KEY in headers else None
        if self._body is None and idempotency is None:
            return await self._carry_out(request, idempotency, values=values)
        if not is_large(headers):
            request.body = await read_body(receive, limit=surface.body_limit)
            return await self._carry_out(request, idempotency, values=values)
        async with self._large_bodies.room():
            request.body = await read_body(receive, limit=surface.body_limit)
            async with self._large_bodies.turn():
                return await self._carry_out(request, idempotency, values=values)

    async def _carry_out(self, request: Request, idempotency: Idempotency | None, *, values: list[str]) -> Response:
        media_type = "" if self._body is None else self._body.accept(request.headers, empty=not request.body)
        request.check_transaction_id()
        arguments = self._arguments(request, values, media_type)
        if idempotency is not None and self._respond is not None:
            act: Callable[[], Awaitable[Any]] = partial(self._function, request, **arguments)
            return await idempotency.run(request, act, respond=self._respond, status=self.spec.status)
        outcome: Any = await self._function(request, **arguments)
        response: Response = outcome if self._respond is None else await self._respond(request, outcome)
        return response

    def _arguments(self, request: Request, values: list[str], media_type: str) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        unknown: list[UnknownName] = []
        query = request.scope["query_string"]
        try:
            for (name, convert), value in zip(self._converters, values, strict=True):
                arguments[name] = convert(value)
            if self._query is not None:
                arguments["query"] = self._query.parse(query, unknown)
            elif query:
                unknown += unknown_in_names(names_of_query(query), {})
            if self._body is not None:
                arguments["body"] = self._body.parse(request.body, media_type, headers=request.headers, unknown=unknown)
        except BadRequest as wrong:
            self._judge(request, unknown, errors=wrong.errors)
            raise
        if unknown or PREFER in request.headers:
            self._judge(request, unknown)
        return arguments

    def _judge(self, request: Request, unknown: list[UnknownName], *, errors: Sequence[FieldError] = ()) -> None:
        """Unknown names by the rule of the surface and the preference of the caller: told, or refused with the other errors."""
        rule = self.surface.unknown_names
        if rule == "ignored":
            return
        header = whole(request.scope["headers"], PREFER) if PREFER in request.headers else b""
        strict = preference(header, "handling") == "strict"
        if strict:
            request.notes += _STRICT
        if unknown and (strict or rule == "refused"):
            raise BadRequest(*errors, *(name.error for name in unknown[:MOST]))
        if unknown:
            request.notes += (warning(unknown[:MOST]),)


def _responder(spec: RouteSpec, services: Services) -> Respond | None:
    respond = spec.respond
    if respond is None:
        return None
    wanted = responder_services(respond)
    return partial(respond, **_provided(spec, wanted, services=services)) if wanted else respond


def _provided(spec: RouteSpec, wanted: dict[str, Any], *, services: Services) -> dict[str, object]:
    missing = [f"{name}: {kind}" for name, kind in wanted.items() if kind not in services]
    if missing:
        raise MissingServices(f"{spec.where}: nothing provides {', '.join(missing)}")
    return {name: services[kind] for name, kind in wanted.items()}

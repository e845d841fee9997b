"""An endpoint bound without FastAPI's solver: path values, a query model, a body, and services that are looked up once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter
from typing import Any, Final
from uuid import UUID
from weakref import WeakKeyDictionary

from pydantic import TypeAdapter
from starlette.types import Receive, Scope, Send

from api.http.body import BodyParser
from api.http.conventions import Conventions, MissingServices, Services
from api.http.errors import BadRequest, FieldError
from api.http.forms import QueryParser
from api.http.header_lists import preference, whole
from api.http.large_bodies import is_large
from api.http.parsing import Validator
from api.http.request import IDEMPOTENCY_KEY, PREFER, SCOPE, Notes, Request
from api.http.response import Response
from api.http.routing import Route
from api.http.unknown_names import MOST, UnknownName, names_of_query, unknown_in_names, warning

Converter = Callable[[str], Any]
_STRICT: Final[Notes] = ((b"preference-applied", b"handling=strict"), (b"vary", b"prefer"))


@dataclass(frozen=True, slots=True)
class Parsers:
    """Turn a request of one route into arguments."""

    converters: tuple[tuple[str, str, Converter], ...]
    """Parameter, name in the path, and converter."""
    query: QueryParser | None
    body: BodyParser | None


_PARSERS: Final[WeakKeyDictionary[Route, Parsers]] = WeakKeyDictionary()


def parsers(route: Route) -> Parsers:
    """Return the parsers of a route. They hold no state, so all applications of a process share them."""
    made = _PARSERS.get(route)
    if made is None:
        made = _PARSERS[route] = _made(route)
    return made


def _made(route: Route) -> Parsers:
    signature, rules, body = route.signature, route.rules, None
    converters = tuple((name, spelled, _converter(kind, where=spelled)) for name, spelled, kind in signature.path)
    query = None if signature.query is None else QueryParser(signature.query, empty_is_absent=route.lists)
    if signature.body is not None:
        default = ... if signature.body.default is Parameter.empty else signature.body.default
        typed = rules.typed_body or route.surface.typed_bodies
        body = BodyParser(signature.body_type, body_types=rules.body_types, default=default, typed=typed)
    return Parsers(converters, query, body)


class Endpoint:
    """The ASGI application of one route. All look-ups that do not depend on the request are done at the start."""

    __slots__ = ("_body", "_conventions", "_converters", "_function", "_query", "_route", "_unknown_names")

    def __init__(self, route: Route, services: Services, conventions: Conventions) -> None:
        parsed, signature = parsers(route), route.signature
        self._route = route
        self._conventions = conventions
        self._unknown_names = route.surface.unknown_names
        self._converters = parsed.converters
        self._query = parsed.query
        self._body = parsed.body
        missing = [f"{name}: {kind}" for name, kind in signature.services.items() if kind not in services]
        if missing:
            raise MissingServices(f"{route.where}: nothing provides {', '.join(missing)}")
        self._function = partial(route.endpoint, **{name: services[kind] for name, kind in signature.services.items()})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._respond(scope[SCOPE])
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        """Raise 401, 403, 413, 415 or 400, in this order, or call the function, which raises 404, 412 and 409."""
        await self._route.admit(request)
        if self._body is None and not (IDEMPOTENCY_KEY in request.fields and self._route.keeps_answer):
            return await self._carry_out(request)
        if not is_large(request.fields):
            await request.read()
            return await self._carry_out(request)
        async with self._conventions.large_bodies.room():
            await request.read()
            async with self._conventions.large_bodies.turn():
                return await self._carry_out(request)

    async def _carry_out(self, request: Request) -> Response:
        media_type = "" if self._body is None else self._body.accept(request.fields, empty=not request.content)
        request.check_transaction_id()
        response: Response = await self._function(request, **self._arguments(request, media_type))
        return response

    def _arguments(self, request: Request, media_type: str) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        unknown: list[UnknownName] = []
        query = request.scope["query_string"]
        try:
            if self._converters:
                values: Mapping[str, str] = request.scope["path_params"]
                for name, spelled, convert in self._converters:
                    arguments[name] = convert(values[spelled])
            if self._query is not None:
                arguments["query"] = self._query.parse(query, unknown)
            elif query:
                unknown += unknown_in_names(names_of_query(query), {})
            if self._body is not None:
                json = self._conventions.parse_json
                arguments["body"] = self._body.parse(
                    request.content, media_type, headers=request.fields, unknown=unknown, json=json
                )
        except BadRequest as wrong:
            self._judge(request, unknown, errors=wrong.errors)
            raise
        if unknown or PREFER in request.fields:
            self._judge(request, unknown)
        return arguments

    def _judge(self, request: Request, unknown: list[UnknownName], *, errors: Sequence[FieldError] = ()) -> None:
        """Report unknown names, or refuse them with the other errors: the surface and the caller's preference decide."""
        if self._unknown_names == "ignored":
            return
        header = whole(request.scope["headers"], PREFER) if PREFER in request.fields else b""
        strict = preference(header, "handling") == "strict"
        if strict:
            request.notes += _STRICT
        if unknown and (strict or self._unknown_names == "refused"):
            raise BadRequest(*errors, *(name.error for name in unknown[:MOST]))
        if unknown:
            request.notes += (warning(unknown[:MOST]),)


def _converter(annotation: Any, *, where: str) -> Converter:
    """The three kinds of id that paths hold, by hand; anything else by pydantic."""
    if annotation is UUID:
        return _guid(where)
    if annotation is int:
        return partial(_whole_number, where=where)
    if annotation is str:
        return partial(_text, where=where)
    validator = Validator(annotation, where=where)
    return lambda value: validator.read(_text(value, where=where))


def _guid(where: str) -> Converter:
    validate = TypeAdapter(UUID).validator.validate_python

    def convert(value: str) -> Any:
        try:
            return validate(value)
        except ValueError:
            raise BadRequest.at(where, "must be a GUID") from None

    return convert


def _whole_number(value: str, *, where: str) -> int:
    digits = value.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) < 20:
        number = int(value)
        if -(2**63) <= number < 2**63:
            return number
    raise BadRequest.at(where, "must be a whole number")


def _text(value: str, *, where: str) -> str:
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise BadRequest.at(where, "is not UTF-8")
    if "\0" in value:
        raise BadRequest.at(where, "may not have a NUL character")
    return value

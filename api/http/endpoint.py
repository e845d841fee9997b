"""An endpoint bound without FastAPI's solver: path values, a query model, a body, and services that are looked up once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final
from uuid import UUID

from pydantic import TypeAdapter

from api.guards.large_bodies import LargeBodies, is_large
from api.http.errors import BadRequest, FieldError
from api.http.headers import preference, whole
from api.http.parsing import JsonParser, Validator
from api.http.request import IDEMPOTENCY_KEY, PREFER, Request
from api.http.response import Response
from api.http.routing import Route
from api.http.unknown_names import MOST, UnknownName, names_of_query, unknown_in_names, warning

_STRICT: Final = ((b"preference-applied", b"handling=strict"), (b"vary", b"prefer"))
_validate_guid: Final = TypeAdapter(UUID).validator.validate_python


class MissingServices(LookupError):
    """Raised when endpoints need services that are not provided: the application cannot start."""


class Endpoint:
    """The bound endpoint of one route. Everything that does not depend on the request is looked up at the start."""

    __slots__ = ("_body", "_converters", "_function", "_large_bodies", "_parse_json", "_query", "_route")

    def __init__(self, route: Route, services: Mapping[Any, object], *, large_bodies: LargeBodies, parse_json: JsonParser) -> None:
        self._route = route
        self._large_bodies = large_bodies
        self._parse_json = parse_json
        self._converters = [(name, spelled, _converter(kind, where=spelled)) for name, spelled, kind in route.signature.path]
        self._query = route.query
        self._body = None if route.signature.body is None else route.body
        wanted = route.signature.services
        missing = [f"{name}: {kind}" for name, kind in wanted.items() if kind not in services]
        if missing:
            raise MissingServices(f"{route.where}: nothing provides {', '.join(missing)}")
        self._function: Callable[..., Awaitable[Response]] = partial(
            route.endpoint, **{name: services[kind] for name, kind in wanted.items()}
        )

    async def respond(self, request: Request) -> Response:
        """Raise 401, 403, 413, 415 or 400, in this order, or call the function, which raises 404, 412 and 409."""
        route = self._route
        await route.admit(request)
        if self._body is not None or (IDEMPOTENCY_KEY in request.fields and route.keeps_answer):
            if is_large(request.fields):
                async with self._large_bodies.room():
                    await request.read()
                    async with self._large_bodies.turn():
                        return await self._function(request, **self._arguments(request))
            await request.read()
        return await self._function(request, **self._arguments(request))

    def _arguments(self, request: Request) -> dict[str, Any]:
        media_type = "" if self._body is None else self._body.accept(request.fields, empty=not request.content)
        request.check_transaction_id()
        arguments: dict[str, Any] = {}
        unknown: list[UnknownName] = []
        query = request.scope["query_string"]
        try:
            for name, spelled, convert in self._converters:
                arguments[name] = convert(request.scope["path_params"][spelled])
            if self._query is not None:
                arguments["query"] = self._query.parse(query, unknown)
            elif query:
                unknown += unknown_in_names(names_of_query(query))
            if self._body is not None:
                arguments["body"] = self._body.parse(
                    request.content, media_type, headers=request.fields, unknown=unknown, json=self._parse_json
                )
        except BadRequest as wrong:
            self._judge(request, unknown, errors=wrong.errors)
            raise
        if unknown or PREFER in request.fields:
            self._judge(request, unknown)
        return arguments

    def _judge(self, request: Request, unknown: list[UnknownName], *, errors: Sequence[FieldError] = ()) -> None:
        """Report unknown names, or refuse them with the other errors: the surface and the caller's preference decide."""
        rule = self._route.surface.unknown_names
        if rule == "ignored":
            return
        header = whole(request.scope["headers"], PREFER) if PREFER in request.fields else b""
        strict = preference(header, "handling") == "strict"
        if strict:
            request.notes += _STRICT
        if unknown and (strict or rule == "refused"):
            raise BadRequest(*errors, *(name.error for name in unknown[:MOST]))
        if unknown:
            request.notes += (warning(unknown[:MOST]),)


@cache
def _converter(annotation: Any, *, where: str) -> Callable[[str], Any]:
    """Return a converter of path values. Ids are read without pydantic's errors, or without pydantic."""
    if annotation is UUID:
        return partial(_guid, where=where)
    if annotation is int:
        return partial(_whole_number, where=where)
    if annotation is str:
        return partial(_text, where=where)
    validator = Validator(annotation, where=where)
    return lambda value: validator.read(_text(value, where=where))


def _guid(value: str, *, where: str) -> Any:
    try:
        return _validate_guid(value)
    except ValueError:
        raise BadRequest.at(where, "must be a GUID") from None


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

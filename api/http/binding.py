"""Parameters of an endpoint: the sources of their values, and their conversion. Inspected once, when the application starts."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, get_type_hints
from uuid import UUID

from pydantic import TypeAdapter

from api.http.body import BodyParser
from api.http.errors import BadRequest
from api.http.forms import QueryParser
from api.http.model import Wire
from api.http.parsing import JsonParser, Validator
from api.http.path_trie import parameter_names
from api.http.router import Respond, RouteSpec

Converter = Callable[[str], Any]
_CACHED: Final = 1024  # route specs; the product has some 170
_HUMP: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of an endpoint, by the source of their values."""

    path: dict[str, tuple[str, Any]]
    """By parameter: its name in the template, and its type."""
    query: type[Wire] | None
    body: inspect.Parameter | None
    body_type: Any
    services: dict[str, Any]


@lru_cache(_CACHED)
def read_signature(spec: RouteSpec) -> Signature:
    """Cached for the process: an application, its API description and the next application read the same one."""
    endpoint = spec.endpoint
    hints = get_type_hints(endpoint, include_extras=True)
    parameters = dict(inspect.signature(endpoint).parameters)
    first = next(iter(parameters), None)
    if first != "request":
        raise TypeError(f"{spec.where}: the first parameter must be `request: Request`")
    del parameters[first]
    templated = {_snake(name): name for name in parameter_names(spec.path)}
    unknown = templated.keys() - parameters.keys()
    if unknown:
        raise TypeError(f"{spec.where}: no parameter for {', '.join(sorted(unknown))}")
    path = {name: (spelled, hints.get(name, str)) for name, spelled in templated.items()}
    query = hints.get("query") if "query" in parameters else None
    if query is not None and not (isinstance(query, type) and issubclass(query, Wire)):
        raise TypeError(f"{spec.where}: query must be a Wire model")
    services = {name: hints.get(name) for name in parameters if name not in ("query", "body", *templated)}
    return Signature(path, query, parameters.get("body"), hints.get("body"), services)


@lru_cache(_CACHED)
def responder_services(respond: Respond) -> dict[str, Any]:
    """The first two parameters of a responder are the request and the outcome; the others are services."""
    hints = get_type_hints(respond, include_extras=True)
    return {name: hints.get(name) for name in list(inspect.signature(respond).parameters)[2:]}


@dataclass(frozen=True, slots=True)
class Parsers:
    """Turn a request of one route into arguments. They hold no state, so applications share them."""

    names: tuple[str, ...]
    converters: tuple[tuple[str, Converter], ...]
    query: QueryParser | None
    body: BodyParser | None


@lru_cache(_CACHED)
def parsers(spec: RouteSpec, json: JsonParser) -> Parsers:
    signature = read_signature(spec)
    return Parsers(
        tuple(spelled for spelled, _ in signature.path.values()),
        tuple((name, _converter(kind, where=spelled)) for name, (spelled, kind) in signature.path.items()),
        None if signature.query is None else QueryParser(signature.query, empty_is_absent=spec.lists),
        _body_parser(spec, signature, json=json),
    )


def _body_parser(spec: RouteSpec, signature: Signature, *, json: JsonParser) -> BodyParser | None:
    if signature.body is None:
        return None
    default = ... if signature.body.default is inspect.Parameter.empty else signature.body.default
    typed = spec.typed_body or spec.surface.typed_bodies
    return BodyParser(signature.body_type, body_types=spec.body_types, default=default, json=json, typed=typed)


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


def _snake(name: str) -> str:
    """`{eventId}` in a path is the parameter `event_id`."""
    return _HUMP.sub(r"_\1", name).lower()

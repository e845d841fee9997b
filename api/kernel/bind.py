"""A declaration bound to its services: signatures are read here, once, so that a request finds everything laid out."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, get_type_hints
from uuid import UUID

from pydantic import TypeAdapter

from api.kernel.answer import Answer
from api.kernel.auth import Gate
from api.kernel.body import BodyParser, Receive, check_length, read_body
from api.kernel.call import Call
from api.kernel.dispatch import parameter_names
from api.kernel.errors import HttpRefusal
from api.kernel.idempotency import HEADER, Once
from api.kernel.metrics import Meter
from api.kernel.pairs import QueryParser
from api.kernel.parsing import Validator
from api.kernel.routes import Declaration
from api.kernel.wire import Wire
from domain.kernel.errors import Malformed

Converter = Callable[[str], Any]
Services = Mapping[Any, object]
_HUMP: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


class MissingServices(LookupError):
    """The application cannot start: endpoints ask for what nobody provides."""


@dataclass(frozen=True, slots=True)
class Signature:
    """An endpoint's parameters, sorted by where their values come from."""

    path: dict[str, tuple[str, Any]]
    """By parameter: its name in the template, and its type."""
    query: type[Wire] | None
    body: inspect.Parameter | None
    body_type: Any
    services: dict[str, Any]


def read_signature(declaration: Declaration) -> Signature:
    endpoint = declaration.endpoint
    hints = get_type_hints(endpoint, include_extras=True)
    parameters = dict(inspect.signature(endpoint).parameters)
    first = next(iter(parameters), None)
    if first != "call":
        raise TypeError(f"{_where(declaration)}: the first parameter must be `call: Call`")
    del parameters[first]
    templated = {_snake(name): name for name in parameter_names(declaration.path)}
    unknown = templated.keys() - parameters.keys()
    if unknown:
        raise TypeError(f"{_where(declaration)}: no parameter for {', '.join(sorted(unknown))}")
    path = {name: (spelled, hints.get(name, str)) for name, spelled in templated.items()}
    query = hints.get("query") if "query" in parameters else None
    if query is not None and not (isinstance(query, type) and issubclass(query, Wire)):
        raise TypeError(f"{_where(declaration)}: query must be a Wire model")
    services = {name: hints.get(name) for name in parameters if name not in ("query", "body", *templated)}
    return Signature(path, query, parameters.get("body"), hints.get("body"), services)


class BoundRoute:
    """A route ready to serve: the checks of a request in their fixed order, then the endpoint."""

    __slots__ = (
        "_body",
        "_body_limit",
        "_caller_at",
        "_converters",
        "_endpoint",
        "_gate",
        "_names",
        "_once",
        "_query",
        "_roles",
        "_surface",
        "declaration",
        "meter",
    )

    def __init__(self, declaration: Declaration, services: Services, *, gate: Gate, once: Once, meter: Meter) -> None:
        signature = read_signature(declaration)
        self.declaration = declaration
        self.meter = meter
        self._gate = gate
        self._roles = declaration.permission
        self._surface = declaration.surface
        self._once = once if declaration.keeps_answer else None
        self._body_limit = declaration.surface.body_limit
        self._names = tuple(spelled for spelled, _ in signature.path.values())
        self._caller_at = next((at for at, name in enumerate(self._names) if name == self._surface.caller_in_path), None)
        self._converters = [(name, _converter(kind, where=spelled)) for name, (spelled, kind) in signature.path.items()]
        self._query = None if signature.query is None else QueryParser(signature.query)
        self._body = _body_parser(declaration, signature)
        self._endpoint = _inject(declaration, signature.services, services=services)

    async def answer(self, call: Call, receive: Receive, *, values: list[str]) -> Answer:
        """401, 403, 413, 415, 400, in this order; the endpoint adds 404, 412 and 409 by raising."""
        headers = call.headers
        if values:
            call.place(self._names, values=values)  # at once: a refusal may name what the path names
        if self._roles is not None:
            call.caller = await self._gate.admit(
                headers,
                roles=self._roles,
                client_required=self._surface.client_required,
                named=None if self._caller_at is None else values[self._caller_at],
                quoted=self._surface.quoted_keys,
            )
        check_length(headers, limit=self._body_limit)
        once = self._once if HEADER in headers else None
        media_type = ""
        if self._body is not None or once is not None:
            call.body = await read_body(receive, limit=self._body_limit)
        if self._body is not None:
            media_type = self._body.accept(headers, empty=not call.body)
        call.check()
        act: Callable[[], Awaitable[Answer]] = partial(self._endpoint, call, **self._arguments(call, values, media_type))
        if once is not None:
            return await once.run(call, act)
        return await act()

    def _arguments(self, call: Call, values: list[str], media_type: str) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        for (name, convert), value in zip(self._converters, values, strict=True):
            arguments[name] = convert(value)
        if self._query is not None:
            arguments["query"] = self._query.parse(call.scope["query_string"])
        if self._body is not None:
            arguments["body"] = self._body.parse(call.body, media_type, headers=call.headers)
        return arguments


class RefusingRoute:
    """Stands where no route is, so that dispatch, the metrics and the log know one case only: it says 404 or 405."""

    __slots__ = ("_refusal", "declaration", "meter")

    def __init__(self, declaration: Declaration, refusal: Callable[[], HttpRefusal], *, meter: Meter) -> None:
        self.declaration = declaration
        self.meter = meter
        self._refusal = refusal

    async def answer(self, call: Call, receive: Receive, *, values: list[str]) -> Answer:
        raise self._refusal()


Route = BoundRoute | RefusingRoute


def _inject(declaration: Declaration, wanted: dict[str, Any], *, services: Services) -> Callable[..., Awaitable[Answer]]:
    missing = [f"{name}: {kind}" for name, kind in wanted.items() if kind not in services]
    if missing:
        raise MissingServices(f"{_where(declaration)}: nothing provides {', '.join(missing)}")
    return partial(declaration.endpoint, **{name: services[kind] for name, kind in wanted.items()})


def _body_parser(declaration: Declaration, signature: Signature) -> BodyParser | None:
    if signature.body is None:
        return None
    default = ... if signature.body.default is inspect.Parameter.empty else signature.body.default
    return BodyParser(signature.body_type, body_types=declaration.body_types, default=default)


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
            raise Malformed.at(where, "must be a GUID") from None

    return convert


def _whole_number(value: str, *, where: str) -> int:
    digits = value.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) < 20:
        number = int(value)
        if -(2**63) <= number < 2**63:
            return number
    raise Malformed.at(where, "must be a whole number")


def _text(value: str, *, where: str) -> str:
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise Malformed.at(where, "is not UTF-8")
    if "\0" in value:
        raise Malformed.at(where, "may not have a NUL character")
    return value


def _snake(name: str) -> str:
    """`{eventId}` in a path is the parameter `event_id`."""
    return _HUMP.sub(r"_\1", name).lower()


def _where(declaration: Declaration) -> str:
    return f"{declaration.method} {declaration.path} ({declaration.endpoint.__module__}.{declaration.name})"

"""Route declarations. A declaration is data: nothing runs until the application binds it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack, get_origin

from api.http.auth import Permission
from api.http.body import JSON, BodyType
from api.http.response import JSON_TYPE, Response
from api.http.surface import Surface

EndpointFunction = Callable[..., Awaitable[Any]]
"""Gives a `Response`; with `respond`, what `respond` words the response from."""
Respond = Callable[..., Awaitable[Response]]
F = TypeVar("F", bound=EndpointFunction)
WRITES: Final = ("POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True, slots=True)
class RouteSpec:
    """One method at one path, and all that can be said about it without running it."""

    method: str
    path: str
    permission: Permission
    endpoint: EndpointFunction
    surface: Surface
    tag: str
    name: str
    response_model: Any = None
    status: int = 200
    absent: Literal[204, 404] | None = None
    body_types: tuple[BodyType, ...] = (JSON,)
    respond: Respond | None = None
    if_match: bool = False
    media_type: str = JSON_TYPE
    documented: bool = True
    typed_body: bool = False
    streamed_body: bool = False
    stored: bool = True
    example: Any = field(default=None, hash=False)
    errors: Mapping[int, str] = field(default_factory=dict, hash=False)
    answers: Mapping[int, str] = field(default_factory=dict, hash=False)

    @property
    def documented_path(self) -> str:
        """As OpenAPI writes it, which knows no parameter of several segments."""
        return self.path.replace("{+", "{")

    @property
    def where(self) -> str:
        """For messages to who declared it."""
        return f"{self.method} {self.path} ({self.endpoint.__module__}.{self.name})"

    @property
    def lists(self) -> bool:
        """Whether it reads a list: an array, or a page of results."""
        model = self.response_model
        return self.method == "GET" and (get_origin(model) is list or "results" in getattr(model, "model_fields", {}))

    @property
    def keeps_answer(self) -> bool:
        """Whether an Idempotency-Key means something here."""
        return self.method == "POST" and self.respond is not None and self.permission is not None and self.surface.keeps_answers

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.endpoint) or self.name.replace("_", " ")).split("\n", 1)[0].strip()

    @property
    def description(self) -> str:
        return (inspect.getdoc(self.endpoint) or "").partition("\n")[2].strip()


class Options(TypedDict, total=False):
    """What a declaration may say besides its path and permission.

    `response_model` is the documented model of the body, `status` the documented status (the endpoint's response has the real one).
    `typed_body`: without a Content-Type the body is refused, as on a surface with `typed_bodies`. `streamed_body`: the endpoint
    reads a body of any length from `request.pieces`. `example` is a documented body; without it the examples of the body's model
    are. `errors` documents statuses that the framework does not know of, `answers` further ones whose body is of the
    `response_model`.
    `absent` is what a `NotFound` from the endpoint becomes; None: the endpoint raises none. By default 404 where the path names
    something. `if_match`: the header If-Match counts; by default for every write. Elsewhere it is ignored.
    `respond(request, outcome, …)` makes the response of a write after the write, and again when the request is repeated under its
    Idempotency-Key."""

    response_model: Any
    status: int
    absent: Literal[204, 404] | None
    if_match: bool
    body_types: tuple[BodyType, ...]
    respond: Respond
    name: str
    media_type: str
    documented: bool
    typed_body: bool
    streamed_body: bool
    example: Any
    errors: Mapping[int, str]
    answers: Mapping[int, str]


@dataclass(slots=True)
class Router:
    """The routes of one resource. Paths begin with the surface's prefix, then this one's. Without `stored`, or where the surface
    says so, no cache keeps what they answer."""

    prefix: str = ""
    surface: Surface = field(kw_only=True)
    tag: str | None = field(default=None, kw_only=True)
    stored: bool = field(default=True, kw_only=True)
    specs: list[RouteSpec] = field(default_factory=list, init=False)

    def get(self, path: str, permission: Permission, **options: Unpack[Options]) -> Callable[[F], F]:
        """HEAD is answered too."""
        return self._declare("GET", path, permission=permission, **options)

    def post(self, path: str, permission: Permission, **options: Unpack[Options]) -> Callable[[F], F]:
        return self._declare("POST", path, permission=permission, **options)

    def put(self, path: str, permission: Permission, **options: Unpack[Options]) -> Callable[[F], F]:
        return self._declare("PUT", path, permission=permission, **options)

    def patch(self, path: str, permission: Permission, **options: Unpack[Options]) -> Callable[[F], F]:
        return self._declare("PATCH", path, permission=permission, **options)

    def delete(self, path: str, permission: Permission, **options: Unpack[Options]) -> Callable[[F], F]:
        return self._declare("DELETE", path, permission=permission, **options)

    def _declare(self, method: str, path: str, *, permission: Permission, **options: Unpack[Options]) -> Callable[[F], F]:
        full = f"{self.surface.prefix}{self.prefix}{path}" or "/"
        usual: dict[str, Any] = {"absent": 404 if "{" in full else None, "if_match": method in WRITES}
        given: dict[str, Any] = {"name": None, **usual, **options}
        _check(method, full, permission=permission, absent=given["absent"])
        name = given.pop("name")
        tag = self.tag or self.prefix.strip("/").split("/")[0] or self.surface.name

        def declare(endpoint: F) -> F:
            _check_endpoint(endpoint, f"{method} {full}")
            spoken = name or endpoint.__name__
            stored = self.stored and self.surface.stored
            spec = RouteSpec(method, full, permission, endpoint, self.surface, tag=tag, name=spoken, stored=stored, **given)
            self.specs.append(spec)
            return endpoint

        return declare


def with_annotations(**kinds: Any) -> Callable[[F], F]:
    """For endpoints that are declared in a loop or a factory: the types of parameters that differ from one to the next."""

    def decorate(endpoint: F) -> F:
        endpoint.__annotations__.update(kinds)
        return endpoint

    return decorate


def with_doc(text: str) -> Callable[[F], F]:
    """The same for an endpoint's docstring."""

    def decorate(endpoint: F) -> F:
        endpoint.__doc__ = text
        return endpoint

    return decorate


def _check(method: str, path: str, *, permission: Permission, absent: int | None) -> None:
    """A slip in a declaration is found at import, not by a caller."""
    if permission is not None and (not isinstance(permission, frozenset) or not permission):
        raise TypeError(f"{method} {path}: name a permission, or OPEN")
    if absent == 204 and method != "GET":
        raise TypeError(f"{method} {path}: only a GET may answer 204 for what is not there")
    if not path.startswith("/") or "//" in path:
        raise ValueError(f"{method} {path}: a path begins with a slash and has no empty segments")
    *inner, last = path.split("/")
    for segment in (*inner, last.replace("{+", "{")):
        if ("{" in segment or "}" in segment) and not (segment[:1] == "{" and segment[1:-1].isidentifier() and segment[-1] == "}"):
            raise ValueError(f"{method} {path}: a parameter is a whole segment, such as {{eventId}}; the last may be {{+path}}")


def _check_endpoint(endpoint: object, where: str) -> None:
    if not inspect.iscoroutinefunction(endpoint):
        raise TypeError(f"{where}: the endpoint must be an async function")

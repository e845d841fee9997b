"""How a resource file declares what it answers. A declaration is data: nothing runs until `build` binds it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, TypeVar, Unpack

from api.kernel.answer import JSON_TYPE, Answer
from api.kernel.auth import Permission
from api.kernel.body import JSON, BodyType
from api.kernel.surface import MEDIA, Surface

Endpoint = Callable[..., Awaitable[Answer]]
F = TypeVar("F", bound=Endpoint)


@dataclass(frozen=True, slots=True)
class Declaration:
    """One method at one path, and all that can be said about it without running it."""

    method: str
    path: str
    permission: Permission
    endpoint: Endpoint
    surface: Surface
    tag: str
    name: str
    answers: Any = None
    status: int = 200
    absent: Literal[204, 404] = 404
    body_types: tuple[BodyType, ...] = (JSON,)
    media_type: str = JSON_TYPE
    documented: bool = True

    @property
    def keeps_answer(self) -> bool:
        """Whether an Idempotency-Key means something here."""
        return self.method == "POST" and self.permission is not None and self.surface.keeps_answers

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.endpoint) or self.name.replace("_", " ")).split("\n", 1)[0].strip()

    @property
    def description(self) -> str:
        return (inspect.getdoc(self.endpoint) or "").partition("\n")[2].strip()


class Options(TypedDict, total=False):
    """What a declaration may say besides its path and permission. `answers` is the documented model of the body,
    `status` the documented status (the endpoint's Answer says the real one)."""

    answers: Any
    status: int
    absent: Literal[204, 404]
    body_types: tuple[BodyType, ...]
    name: str
    media_type: str
    documented: bool


@dataclass(slots=True)
class Routes:
    """The routes of one resource. Paths begin with the surface's prefix, then this one's."""

    prefix: str = ""
    surface: Surface = field(default=MEDIA, kw_only=True)
    tag: str | None = field(default=None, kw_only=True)
    declarations: list[Declaration] = field(default_factory=list, init=False)

    def get(self, path: str, permission: Permission, **options: Unpack[Options]) -> Callable[[F], F]:
        """HEAD is answered too. `absent=204`: a NotFound from the endpoint is 204 instead of 404."""
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
        _check(method, full, permission=permission, absent=options.get("absent", 404))
        given: dict[str, Any] = {"name": None, **options}
        name = given.pop("name")
        tag = self.tag or self.prefix.strip("/").split("/")[0] or self.surface.name

        def declare(endpoint: F) -> F:
            _check_endpoint(endpoint, f"{method} {full}")
            spoken = name or endpoint.__name__
            self.declarations.append(Declaration(method, full, permission, endpoint, self.surface, tag=tag, name=spoken, **given))
            return endpoint

        return declare


def reading(**kinds: Any) -> Callable[[F], F]:
    """For endpoints that are declared in a loop or a factory: the types of parameters that differ from one to the next."""

    def tell(endpoint: F) -> F:
        endpoint.__annotations__.update(kinds)
        return endpoint

    return tell


def told(what: str) -> Callable[[F], F]:
    """The same for what an endpoint does: its documentation."""

    def tell(endpoint: F) -> F:
        endpoint.__doc__ = what
        return endpoint

    return tell


def _check(method: str, path: str, *, permission: Permission, absent: int) -> None:
    """A slip in a declaration is found at import, not by a caller."""
    if permission is not None and (not isinstance(permission, frozenset) or not permission):
        raise TypeError(f"{method} {path}: name a permission, or OPEN")
    if absent == 204 and method != "GET":
        raise TypeError(f"{method} {path}: only a GET may answer 204 for what is not there")
    if not path.startswith("/") or "//" in path:
        raise ValueError(f"{method} {path}: a path begins with a slash and has no empty segments")
    for segment in path.split("/"):
        if ("{" in segment or "}" in segment) and not (segment[:1] == "{" and segment[1:-1].isidentifier() and segment[-1] == "}"):
            raise ValueError(f"{method} {path}: a parameter is a whole segment, such as {{eventId}}")


def _check_endpoint(endpoint: object, where: str) -> None:
    if not inspect.iscoroutinefunction(endpoint):
        raise TypeError(f"{where}: the endpoint must be an async function")

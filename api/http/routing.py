"""Routes: FastAPI's `APIRoute` with the order of checks of the API, the rules of a route, and services from the container."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial, wraps
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from fastapi import APIRouter, Depends, params
from fastapi.datastructures import DefaultPlaceholder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic.alias_generators import to_camel
from starlette import requests, responses

from api.http.body import FORM, JSON, BodyParser, BodyType, check_length
from api.http.model import Wire
from api.http.openapi_responses import error_responses, success_text
from api.http.parsing import invalid
from api.http.permission import OPEN, Permission
from api.http.request import IDEMPOTENCY_KEY, IF_MATCH, SCOPE, Request
from api.http.response import JSON_TYPE, Response
from api.http.surface import Surface

if TYPE_CHECKING:
    from fastapi.dependencies.models import Dependant

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S")
Respond = Callable[..., Awaitable[Response]]
WRITES: Final = ("POST", "PUT", "PATCH", "DELETE")
_RULES: Final = "__rules__"
_SEGMENT: Final = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*(:path)?\}")
_KINDS: Final[dict[Callable[..., Any], Any]] = {}
"""The types of services, by the dependencies that provide them."""

if TYPE_CHECKING:
    Service = Annotated[S, "a service of the container"]
else:

    class Service:
        """`Service[EventQueries]` is `Annotated[EventQueries, Depends(…)]`: the container's service of this type."""

        def __class_getitem__(cls, kind: Any) -> Any:
            return Annotated[kind, Depends(_provider(kind))]


@cache
def _provider(kind: Any) -> Callable[..., Any]:
    async def provide(request: requests.Request) -> Any:
        return request.app.services[kind]

    provide.__annotations__["request"] = requests.Request
    _KINDS[provide] = kind
    return provide


@dataclass(frozen=True, slots=True)
class Rules:
    """What a route says beyond the parameters of FastAPI's decorators. See `rules`."""

    respond: Respond | None = None
    absent: Literal[204, 404, "never", None] = None
    if_match: bool | None = None
    body_types: tuple[BodyType, ...] = (JSON,)
    typed_body: bool = False
    streamed_body: bool = False
    media_type: str = JSON_TYPE
    example: Any = field(default=None, hash=False)
    errors: Mapping[int, str] = field(default_factory=dict, hash=False)
    answers: Mapping[int, str] = field(default_factory=dict, hash=False)


def rules(**options: Any) -> Callable[[F], F]:
    """Give an endpoint rules that FastAPI's decorators have no parameter for. It stands below the decorator of the route.

    `respond(request, outcome, …)` makes the response of a write after the write, and again when the request is repeated under its
    Idempotency-Key. `absent` is the status of a `NotFound` that the endpoint raises, 404 by default; "never": it raises none.
    `if_match`: the header If-Match counts; by default it does for every write. `body_types` are the accepted media types.
    `typed_body`: a body without a Content-Type is refused. `streamed_body`: the endpoint reads a body of any length from
    `request.pieces`. `media_type` and `example` document the response's media type and a body of the request. `errors` documents
    further statuses, `answers` those whose body is of the `response_model`."""
    declared = Rules(**options)

    def decorate(endpoint: F) -> F:
        if declared.respond is not None:
            endpoint = cast(F, _responding(endpoint, declared.respond))
        setattr(endpoint, _RULES, declared)
        return endpoint

    return decorate


def _responding(endpoint: Callable[..., Awaitable[Any]], respond: Respond) -> Callable[..., Awaitable[Response]]:
    """Return an endpoint that makes the response of the outcome. It has the parameters of both functions."""
    mine, others = inspect.signature(endpoint).parameters, list(inspect.signature(respond).parameters.values())[2:]
    added = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in others if parameter.name not in mine]
    names = [parameter.name for parameter in others]
    own = frozenset(mine)

    @wraps(endpoint)
    async def write(request: Request, **values: Any) -> Response:
        responding = {name: values[name] for name in names}
        act = partial(endpoint, request, **{name: value for name, value in values.items() if name in own})
        idempotency = request.app.conventions.idempotency
        if idempotency is None or IDEMPOTENCY_KEY not in request.fields or not request.scope["route"].keeps_answer:
            return await respond(request, await act(), **responding)
        status = request.scope["route"].status
        response: Response = await idempotency.run(request, act, respond=partial(respond, **responding), status=status)
        return response

    hints = {**get_type_hints(respond, include_extras=True), **get_type_hints(endpoint, include_extras=True)}
    parameters = [parameter.replace(annotation=hints[parameter.name]) for parameter in (*mine.values(), *added)]
    write.__signature__ = inspect.Signature(parameters, return_annotation=Response)  # type: ignore[attr-defined]
    write.__annotations__ = {**{each.name: each.annotation for each in parameters}, "return": Response}
    return write


def with_annotations(**kinds: Any) -> Callable[[F], F]:
    """Set types of parameters of an endpoint that is declared in a loop or a factory."""

    def decorate(endpoint: F) -> F:
        endpoint.__annotations__.update(kinds)
        return endpoint

    return decorate


def with_doc(text: str) -> Callable[[F], F]:
    """Set the docstring of an endpoint that is declared in a loop or a factory."""

    def decorate(endpoint: F) -> F:
        endpoint.__doc__ = text
        return endpoint

    return decorate


class Route(APIRoute):
    """A route whose checks come in the order of the API: 404 and 405, 401, 403, 413, 415, 400.

    An endpoint whose parameters are a request, path values, a query model, a body and services is bound by `Endpoint`. Any other
    one is bound by FastAPI after the checks."""

    surface: ClassVar[Surface] = Surface("operations")
    stored: ClassVar[bool] = True
    """False: no cache keeps the responses."""
    permission_is_required: ClassVar[bool] = True

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self.rules: Rules = getattr(endpoint, _RULES, Rules())
        self.method: str = min(options.get("methods") or ["GET"])
        self.documented_path = re.sub(r":path\}", "}", path)
        self.permission = self._permission(options.get("dependencies") or ())
        self.roles = self.permission.roles
        absent = self.rules.absent or (404 if "{" in path else None)
        self.absent: Literal[204, 404, None] = None if absent == "never" else absent
        self.if_match = self.method in WRITES if self.rules.if_match is None else self.rules.if_match
        self.where = f"{self.method} {self.documented_path} ({endpoint.__module__}.{endpoint.__name__})"
        self.keeps_answer = (
            self.method == "POST" and self.rules.respond is not None and bool(self.permission.roles) and self.surface.keeps_answers
        )
        """True if an Idempotency-Key means something here."""
        self.writes = self.method in WRITES
        self.changes = self.writes or self.rules.respond is not None
        self._check(path)
        model = options.get("response_model")
        if isinstance(model, DefaultPlaceholder) and self.rules.respond is not None:
            model = options["response_model"] = None
        summary, _, description = (inspect.getdoc(endpoint) or "").partition("\n")
        if summary and not options.get("summary"):
            options["summary"] = summary.strip()
        self.signature = Signature.of(endpoint, self)
        self.status: int = options.get("status_code") or 200
        self.response_model = None if isinstance(model, DefaultPlaceholder) else model
        name = options.get("name") or endpoint.__name__
        options["operation_id"] = options.get("operation_id") or to_camel(name)
        options["responses"] = {**error_responses(self), **(options.get("responses") or {})}
        options["response_description"] = success_text(self)
        if self.signature.returns_response:
            typed = self.response_model is not None and self.status != 204
            options["response_class"] = JSONResponse if typed else responses.Response
        super().__init__(path, endpoint, **options)
        if summary and "\n" not in (options.get("description") or ""):
            self.description = description.strip()
        self.is_simple = self.signature.is_simple and self._depends_on_permission_alone()

    def __hash__(self) -> int:
        return hash((self.path, self.endpoint))

    @property
    def lists(self) -> bool:
        """True if it reads a list: an array, or a page of results."""
        model = self.response_model
        return self.method == "GET" and (get_origin(model) is list or "results" in getattr(model, "model_fields", {}))

    @property
    def tag(self) -> str:
        return str(self.tags[0]) if self.tags else self.documented_path.strip("/").split("/")[0] or self.surface.name

    def get_route_handler(self) -> Callable[[requests.Request], Coroutine[Any, Any, responses.Response]]:
        """Return FastAPI's handler behind the checks of the API."""
        handle = super().get_route_handler()
        names: dict[str, str] = {}
        _add_query_names(self.dependant, names)
        form = self.body_field is not None and isinstance(self.body_field.field_info, params.Form)
        types = (FORM,) if form and self.rules.body_types == (JSON,) else self.rules.body_types
        media_types = BodyParser(Any, body_types=types, typed=self.rules.typed_body or self.surface.typed_bodies)

        async def checked(plain: requests.Request) -> responses.Response:
            request: Request = plain.scope[SCOPE]
            await self.admit(request)
            if self.body_field is not None:
                await request.read()
                media_types.accept(request.fields, empty=not request.content)
            request.check_transaction_id()
            request.query_names = names
            try:
                return await handle(request)
            except RequestValidationError as error:
                raise invalid(error) from None

        return checked

    async def admit(self, request: Request) -> None:
        """Raise 401, 403 or 413. Afterwards the request has its caller, and its body may be read."""
        conventions, surface = request.scope["app"].conventions, self.surface
        if self.roles:
            named = request.path_params.get(surface.caller_in_path) if surface.caller_in_path else None
            request.caller = await conventions.authorizers[surface.sessions, self.changes].admit(
                request,
                roles=self.roles,
                client_required=surface.client_required,
                named=named,
                quoted=surface.quoted_keys,
                bearer=surface.bearer_keys,
            )
        conventions.admitted(request)
        request.body_limit = surface.body_limit
        if self.writes and not self.rules.streamed_body:
            check_length(request.fields, limit=surface.body_limit)
        if not self.if_match:
            request.fields.pop(IF_MATCH, None)

    def _permission(self, dependencies: Any) -> Permission:
        for dependency in dependencies:
            if isinstance(dependency, Permission):
                return dependency
        if self.permission_is_required:
            raise TypeError(f"{self.method} {self.documented_path}: name a permission in `dependencies`, or OPEN")
        return OPEN

    def _depends_on_permission_alone(self) -> bool:
        return all(isinstance(dependency, Permission) for dependency in self.dependencies)

    def _check(self, path: str) -> None:
        """A slip in a declaration is found at import, not by a caller."""
        if self.absent == 204 and self.method != "GET":
            raise TypeError(f"{self.where}: only a GET may answer 204 for what does not exist")
        if not path.startswith("/") or "//" in path:
            raise ValueError(f"{self.where}: a path begins with a slash and has no empty segments")
        *inner, last = path.split("/")
        for segment in (*inner, last.replace(":path}", "}")):
            if ("{" in segment or "}" in segment) and (not _SEGMENT.fullmatch(segment) or ":" in segment):
                raise ValueError(f"{self.where}: a parameter is a whole segment, such as {{id}}; the last may be {{file:path}}")


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of an endpoint by the source of their values, where this package can bind them all."""

    is_simple: bool
    returns_response: bool
    path: tuple[tuple[str, str, Any], ...] = ()
    """Parameter, name in the path, and type."""
    query: type[Wire] | None = None
    body: inspect.Parameter | None = None
    body_type: Any = None
    services: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, endpoint: Callable[..., Any], route: Route) -> Signature:
        hints = get_type_hints(endpoint, include_extras=True)
        parameters = dict(inspect.signature(endpoint).parameters)
        answer = hints.get("return")
        returns_response = isinstance(answer, type) and issubclass(answer, responses.Response)
        signature = cls(returns_response and inspect.iscoroutinefunction(endpoint), returns_response)
        templated = [segment[1:-1] for segment in route.documented_path.split("/") if segment.startswith("{")]
        for name, parameter in parameters.items():
            signature = signature._with(name, hints.get(name, Any), parameter, templated)
        missing = set(templated) - {spelled for _, spelled, _ in signature.path}
        if missing and signature.is_simple:
            raise TypeError(f"{route.where}: no parameter for {', '.join(sorted(missing))}")
        return signature

    def _with(self, name: str, hint: Any, parameter: inspect.Parameter, templated: list[str]) -> Signature:
        kind, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        mark = next((each for each in reversed(marks) if isinstance(each, params.Param | params.Body | params.Depends)), None)
        if mark is None and name in templated:
            return replace(self, path=(*self.path, (name, name, hint)))
        if isinstance(mark, params.Path) and mark.alias in templated:
            return replace(self, path=(*self.path, (name, str(mark.alias), kind)))
        if mark is None and isinstance(kind, type) and issubclass(kind, Request):
            return self
        if isinstance(mark, params.Depends) and mark.dependency in _KINDS:
            return replace(self, services={**self.services, name: _KINDS[mark.dependency]})
        if name == "query" and isinstance(mark, params.Query) and isinstance(kind, type) and issubclass(kind, Wire):
            return replace(self, query=kind)
        if name == "body" and (mark is None or type(mark) is params.Body):
            rest = [each for each in marks if each is not mark]
            whole = Annotated[(kind, *rest)] if rest else kind
            return replace(self, body=parameter, body_type=whole)
        return replace(self, is_simple=False)


def _add_query_names(dependant: Dependant, names: dict[str, str]) -> None:
    for parameter in dependant.query_params:
        names[parameter.alias.lower()] = parameter.alias
    for dependency in dependant.dependencies:
        _add_query_names(dependency, names)


def routes_of(routers: Iterable[APIRouter]) -> Iterator[Route]:
    """Yield the routes of several routers."""
    for router in routers:
        for route in router.routes:
            if isinstance(route, Route):
                yield route

"""Routes: FastAPI's `APIRoute` with permissions, the order of checks of the API, rules, and services from the container."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, cached_property, partial, wraps
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeVar, cast, get_origin, get_type_hints

from fastapi import APIRouter, Depends, Security, params
from fastapi.datastructures import DefaultPlaceholder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi.security import APIKeyHeader, SecurityScopes
from pydantic.alias_generators import to_camel
from starlette import requests, responses

from api.http.body import FORM, JSON, BodyParser, QueryParser, check_length
from api.http.cross_origin import TRACE_HEADERS
from api.http.errors import Forbidden
from api.http.model import Wire
from api.http.parsing import invalid
from api.http.request import IDEMPOTENCY_KEY, IF_MATCH, SCOPE, Caller, Request
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
            return Annotated[kind, Depends(provider(kind))]


@cache
def provider(kind: Any) -> Callable[..., Any]:
    """Return the dependency that provides a service: the key by which `dependency_overrides` replaces it."""

    async def provide(request: requests.Request) -> Any:
        return request.app.services[kind]

    provide.__annotations__["request"] = requests.Request
    _KINDS[provide] = kind
    return provide


API_KEY: Final = APIKeyHeader(
    name="API-KEY",
    scheme_name="API-KEY",
    description="An API key of a client. X-Auth-Key, and Authorization: Bearer, are accepted in its place; where API-KEY and "
    "X-Auth-Key are both there, API-KEY counts. The client must have a role that may make the call.",
    auto_error=False,
)


async def authorized(request: Request, scopes: SecurityScopes, _: Annotated[str | None, Security(API_KEY)] = None) -> Caller:
    """Return the caller of a request. A dependency for `Security`, whose scopes are the roles of which the caller needs one.

    The route has checked the key before it read the body, since 401 and 403 come before all errors of bodies."""
    if scopes.scopes and request.caller.roles.isdisjoint(scopes.scopes):
        raise Forbidden(f"This call needs one of the roles {', '.join(sorted(scopes.scopes))}.")
    return request.caller


async def anyone() -> None:
    """Let every request through: the dependency of routes that need no API key."""


@dataclass(frozen=True)
class Permission(params.Security):
    """The dependency of a route that says who may call it."""

    @property
    def roles(self) -> frozenset[str]:
        """The roles of which a caller needs one. Without roles the route needs no key."""
        return frozenset(self.scopes or ())


def requires(*roles: str) -> Permission:
    """Return the permission of routes for callers that have one of the roles."""
    if not roles:
        raise TypeError("a permission names at least one role; a route that needs no key is OPEN")
    return Permission(authorized, scopes=sorted(roles))


OPEN: Final = Permission(anyone)
"""The permission of routes that need no API key."""


@dataclass(frozen=True, slots=True)
class rules:  # noqa: N801 - it is a decorator
    """The rules of a route beyond the parameters of FastAPI's decorators. It stands below the decorator of the route.

    `respond(request, outcome, …)` makes the response of a write after the write, and again when the request is repeated under its
    Idempotency-Key. `absent` is the status of a `NotFound` that the endpoint raises, 404 by default; "never": it raises none.
    `if_match`: the header If-Match counts; by default it does for every write. `body_types` are the accepted media types.
    `typed_body`: a body without a Content-Type is refused. `streamed_body`: the endpoint reads a body of any length from
    `request.pieces`. `media_type` and `example` document the response's media type and a body of the request. `errors` documents
    further statuses, `answers` those whose body is of the `response_model`."""

    respond: Respond | None = None
    absent: Literal[204, 404, "never", None] = None
    if_match: bool | None = None
    body_types: tuple[tuple[str, ...], ...] = (JSON,)
    typed_body: bool = False
    streamed_body: bool = False
    media_type: str = JSON_TYPE
    example: Any = field(default=None, hash=False)
    errors: Mapping[int, str] = field(default_factory=dict, hash=False)
    answers: Mapping[int, str] = field(default_factory=dict, hash=False)

    def __call__(self, endpoint: F) -> F:
        if self.respond is not None:
            endpoint = cast(F, _responding(endpoint, self.respond))
        setattr(endpoint, _RULES, self)
        return endpoint


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
        idempotency = request.scope["app"].idempotency
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


def declared(doc: str = "", **kinds: Any) -> Callable[[F], F]:
    """Set the docstring, and types of parameters, of an endpoint that is declared in a loop or a factory."""

    def decorate(endpoint: F) -> F:
        endpoint.__doc__ = doc or endpoint.__doc__
        endpoint.__annotations__.update(kinds)
        return endpoint

    return decorate


class _ServingApplication:
    """Gives FastAPI the overrides of the application that serves a request: applications share their routes."""

    def __init__(self) -> None:
        self.application: ContextVar[Any] = ContextVar("the application that serves the request")

    @property
    def dependency_overrides(self) -> Mapping[Callable[..., Any], Callable[..., Any]]:
        overrides: Mapping[Callable[..., Any], Callable[..., Any]] = self.application.get().dependency_overrides
        return overrides


_SERVING: Final = _ServingApplication()


class Route(APIRoute):
    """A route whose checks come in the order of the API: 404 and 405, 401, 403, 413, 415, 400.

    An endpoint whose parameters are a request, path values, a query model, a body and services is bound by `Endpoint`. Any other
    one is bound by FastAPI after the checks."""

    surface: ClassVar[Surface] = Surface("operations")
    stored: ClassVar[bool] = True
    """False: no cache keeps the responses."""
    permission_is_required: ClassVar[bool] = True

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self.rules: rules = getattr(endpoint, _RULES, rules())
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
        self.status: int = options.get("status_code") or 200
        self.response_model = None if isinstance(model, DefaultPlaceholder) else model
        name = options.get("name") or endpoint.__name__
        options["operation_id"] = options.get("operation_id") or to_camel(name)
        answers = {status: {"description": text, "model": self.response_model} for status, text in self.rules.answers.items()}
        options["responses"] = {**answers, **(options.get("responses") or {})}
        options["strict_content_type"] = False
        options["dependency_overrides_provider"] = options.get("dependency_overrides_provider") or _SERVING
        if _returns_response(endpoint):
            typed = self.response_model is not None and self.status != 204
            options["response_class"] = JSONResponse if typed else responses.Response
        super().__init__(path, endpoint, **options)
        if summary and "\n" not in (options.get("description") or ""):
            self.description = description.strip()
        missing = set(self.param_convertors) - {name for _, name, _ in self.signature.path}
        if missing and self.signature.is_simple:
            raise TypeError(f"{self.where}: no parameter for {', '.join(sorted(missing))}")

    def __hash__(self) -> int:
        return hash((self.path, self.endpoint))

    @cached_property
    def signature(self) -> Signature:
        return Signature.of(self)

    @cached_property
    def query(self) -> QueryParser | None:
        """The parser of the query; `None` for a route without a query model."""
        return None if self.signature.query is None else QueryParser(self.signature.query, empty_is_absent=self.lists)

    @cached_property
    def body(self) -> BodyParser:
        """The parser of the body. Routes with the same models and rules do not share it, but all applications of a process do."""
        is_form = self.body_field is not None and isinstance(self.body_field.field_info, params.Form)
        types = (FORM,) if is_form and self.rules.body_types == (JSON,) else self.rules.body_types
        parameter, typed = self.signature.body, self.rules.typed_body or self.surface.typed_bodies
        default = ... if parameter is None or parameter.default is parameter.empty else parameter.default
        return BodyParser(self.signature.body_type, body_types=types, default=default, typed=typed)

    @property
    def headers_read(self) -> set[str]:
        """The headers that a page of another origin may send. Open routes of the engine and of media read a key too."""
        headers = {*TRACE_HEADERS, "api-key", "authorization", "client", "x-actor", "x-auth-key"}
        headers |= {"if-none-match", "last-event-id"} if self.method == "GET" else {"content-type"}
        conditional = ((self.surface.unknown_names != "ignored", "prefer"), (self.if_match, "if-match"))
        return headers | {name for is_read, name in (*conditional, (self.keeps_answer, "idempotency-key")) if is_read}

    @property
    def lists(self) -> bool:
        """True if it reads a list: an array, or a page of results."""
        model = self.response_model
        return self.method == "GET" and (get_origin(model) is list or "results" in getattr(model, "model_fields", {}))

    def get_route_handler(self) -> Callable[[requests.Request], Coroutine[Any, Any, responses.Response]]:
        """Return FastAPI's handler behind the checks of the API. It gets a form as the JSON that the form means."""
        handle = super().get_route_handler()
        names: dict[str, str] = {}
        _add_query_names(self.dependant, names)
        is_form = self.body_field is not None and isinstance(self.body_field.field_info, params.Form)

        async def checked(plain: requests.Request) -> responses.Response:
            request: Request = plain.scope[SCOPE]
            await self.admit(request)
            if self.body_field is not None:
                await request.read()
                media_type = self.body.accept(request.fields, empty=not request.content)
                if not is_form:
                    request.scope["headers"] = [pair for pair in request.scope["headers"] if pair[0] != b"content-type"]
                    json = request.scope["app"].parse_json
                    request.parse = partial(self.body.data, request.content, media_type, headers=request.fields, json=json)
            request.check_transaction_id()
            request.query_names = names
            _SERVING.application.set(request.scope["app"])
            if self.query is not None:
                request.query_data = self.query.data(request.scope["query_string"])
            try:
                return await handle(request)
            except RequestValidationError as error:
                raise invalid(error) from None

        return checked

    async def admit(self, request: Request) -> None:
        """Raise 401, 403 or 413. Afterwards the request has its caller, and its body may be read."""
        application = request.scope["app"]
        if self.roles:
            request.caller = await application.authorize(request, self)
        application.admitted(request)
        request.body_limit = self.surface.body_limit
        if self.writes and not self.rules.streamed_body:
            check_length(request.fields, limit=self.surface.body_limit)
        if not self.if_match:
            request.fields.pop(IF_MATCH, None)

    def _permission(self, dependencies: Any) -> Permission:
        for dependency in dependencies:
            if isinstance(dependency, Permission):
                return dependency
        if self.permission_is_required:
            raise TypeError(f"{self.method} {self.documented_path}: name a permission in `dependencies`, or OPEN")
        return OPEN

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
    """The parameters of an endpoint by the source of their values, as FastAPI has found them."""

    is_simple: bool
    """True if the parameters are a request, path values, one query model, one body and services: `Endpoint` binds them."""
    path: tuple[tuple[str, str, Any], ...]
    """Parameter, name in the path, and type."""
    query: type[Wire] | None
    body: inspect.Parameter | None
    body_type: Any
    services: Mapping[str, Any]

    @classmethod
    def of(cls, route: Route) -> Signature:
        needs, endpoint = route.dependant, route.endpoint
        parameters = inspect.signature(endpoint).parameters
        named = [each for each in needs.dependencies if each.name is not None]
        queries = [each.field_info.annotation for each in needs.query_params]
        query = next((each for each in queries if isinstance(each, type) and issubclass(each, Wire)), None)
        body = needs.body_params[0] if len(needs.body_params) == 1 else None
        others = (needs.header_params, needs.cookie_params, needs.response_param_name, needs.background_tasks_param_name)
        is_simple = (
            inspect.iscoroutinefunction(endpoint)
            and _returns_response(endpoint)
            and not any(others)
            and needs.security_scopes_param_name is None
            and needs.http_connection_param_name is None
            and all(each.call in _KINDS for each in named)
            and all(isinstance(each, Permission) for each in route.dependencies)
            and len(queries) == (query is not None)
            and (not needs.body_params or (body is not None and type(body.field_info) is params.Body and not body.field_info.embed))
        )
        return cls(
            is_simple,
            path=tuple((each.name, each.alias, _type_of(each.field_info)) for each in needs.path_params),
            query=query,
            body=None if body is None else parameters[body.name],
            body_type=None if body is None else _type_of(body.field_info),
            services={str(each.name): _KINDS[each.call] for each in named if each.call in _KINDS},
        )


def _type_of(info: Any) -> Any:
    return Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation


def _returns_response(endpoint: Callable[..., Any]) -> bool:
    answer = get_type_hints(endpoint).get("return")
    return isinstance(answer, type) and issubclass(answer, responses.Response)


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

"""Headers and statuses of the OpenAPI document: those of the request, those of the response, and the errors of each route."""

from __future__ import annotations

import re
from typing import Any, Final, get_args, get_origin

from api.http.openapi_schemas import reference
from api.http.surface import Surface

Route = Any
"""A `Route` of `api/http/routing.py`, which uses this module."""

_JSON: Final = "application/json"
_WRITES: Final = ("POST", "PUT", "PATCH", "DELETE")

_PRINTABLE: Final = "^[ -~]+$"
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_REQUEST: Final = {
    "X-Transaction-ID": "1 to 128 printable ASCII characters. The response repeats it, and it is the correlation id of everything "
    "that the request causes. Such as `import-7`; default: a new GUID.",
    "Idempotency-Key": "1 to 255 printable ASCII characters. The same request sent again within 24 hours gets the first response "
    "again. Such as `add-hall-a`.",
    "If-Match": 'The ETag of the version that the change is meant for, such as `"3"`; another version is 412. Default: any.',
    "client": "The name of the client that the API key belongs to, such as `studio`; another name is 401.",
    "If-None-Match": "ETags that the caller has. Where one of them is that of the response, the response is 304 without a body.",
    "Prefer": "`handling=strict`: fields and parameters that are not documented are refused with 400. Default: they have no effect "
    "and are named in a header Warning.",
    "traceparent": "W3C Trace Context: the trace that the request is a part of. It is kept with the events that the request causes "
    "and sent on with their notifications. Such as `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`.",
    "X-Request-ID": "Taken in the place of X-Transaction-ID where that is absent.",
}
_LONGEST: Final = {"X-Transaction-ID": 128, "Idempotency-Key": 255}
_RESPONSE: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "X-Transaction-ID": ("The transaction id of the request.", {"type": "string"}),
    "ETag": (
        'The version of the resource, in quotes, such as `"3"`; for a compressed body with a checksum behind it, such as '
        '`"3-0c4a2f19"`. Absent where the body is not one resource.',
        {"type": "string"},
    ),
    "Location": ("The address of the new resource.", {"type": "string", "format": "uri-reference"}),
    "Retry-After": ("After how many seconds to try again.", {"type": "integer"}),
    "Idempotency-Replayed": (
        "`true` where this is the response to an earlier request with the same Idempotency-Key; absent otherwise.",
        {"type": "string", "enum": ["true"]},
    ),
    "WWW-Authenticate": ("The ways to authenticate: `ApiKey`, and `Bearer`.", {"type": "string"}),
    "Link": ('The next page: `<…>; rel="next"`. Absent on the last one, and where a list has no pages.', {"type": "string"}),
    "Warning": (
        '`299 - "unknown: …"`: fields and parameters that are not documented and had no effect. Absent where there are none.',
        {"type": "string"},
    ),
    "Preference-Applied": ("`handling=strict` where that was asked for in Prefer.", {"type": "string"}),
}
_ERRORS: Final = {
    304: "The caller has this version: If-None-Match names it",
    400: "The request is not valid; nothing was changed",
    401: "The API key is missing, or it is not valid",
    403: "The API key has none of the roles that this call needs",
    404: "The resource does not exist",
    409: "The change conflicts with a rule or with another change; nothing was changed",
    412: "If-Match names another version; nothing was changed",
    413: "The body is too large",
    415: "The media type of the body is not accepted",
    503: "The database or another service that this call needs is not available",
}


def header_components() -> dict[str, dict[str, Any]]:
    return {name: {"description": text, "schema": schema} for name, (text, schema) in _RESPONSE.items()}


def parameter_components() -> dict[str, dict[str, Any]]:
    return {name: _parameter(name) for name in _REQUEST}


def request_headers(route: Route) -> list[dict[str, Any]]:
    names, required = ["X-Transaction-ID", "X-Request-ID"], []
    if route.permission.roles:
        if route.surface.client_required:
            required.append({**_parameter("client"), "required": True})
        else:
            names.append("client")
    if route.keeps_answer:
        names.append("Idempotency-Key")
    if route.if_match:
        names.append("If-Match")
    if route.method in _WRITES:
        names.append("traceparent")
    elif "ETag" in _headers_of_success(route):
        names.append("If-None-Match")
    if route.surface.unknown_names == "told":
        names.append("Prefer")
    return [*required, *({"$ref": f"#/components/parameters/{name}"} for name in names)]


def error_responses(route: Route) -> dict[int | str, dict[str, Any]]:
    """`default` stands for a fault of the server; FastAPI adds a 422 where it is missing, which is never sent."""
    found = {status: _ERRORS[status] for status in sorted(_usual_errors(route) - route.surface.never)}
    found.update(route.rules.errors)
    content = _error_content(route.surface)
    responses: dict[int | str, dict[str, Any]] = {
        status: {"description": text, **(content if status >= 400 else {})} for status, text in found.items()
    }
    responses.update({status: {"description": text, "model": route.response_model} for status, text in route.rules.answers.items()})
    if route.absent == 204:
        responses[204] = {"description": "Nothing was found"}
    responses["default"] = {"description": "A fault of the server: 500", **content}
    return responses


def statuses(route: Route) -> frozenset[int]:
    """Every status that the operation can give, faults of the server apart. 405 and an unknown path are nobody's."""
    return frozenset(status for status in (route.status, *error_responses(route)) if isinstance(status, int))


def success_text(route: Route) -> str:
    """The description of the response that a client hopes for."""
    if route.status == 204:
        return "Done; the response has no body"
    body = _body_text(route)
    if route.method not in _WRITES:
        return f"The response is {body}"
    return f"{'Added' if route.status == 201 else 'Done'}; the response is {body}"


def response_headers(route: Route, status: str) -> dict[str, dict[str, str]]:
    """References to the headers that a response with this status can have."""
    names = ["X-Transaction-ID"]
    if status == str(route.status):
        names += _headers_of_success(route)
        if route.surface.unknown_names == "told":
            names += ["Warning", "Preference-Applied"]
    elif status == "401":
        names.append("WWW-Authenticate")
    elif status in ("429", "503"):
        names.append("Retry-After")
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _headers_of_success(route: Route) -> list[str]:
    names = []
    is_array = get_origin(route.response_model) is list
    one_resource = route.rules.media_type == _JSON and not is_array
    if route.permission.roles and one_resource and (route.method in _WRITES or route.signature.path):
        names.append("ETag")
    query = route.signature.query
    places = {"pagenumber", "startindex", *(("after",) if is_array else ())}
    if query is not None and not places.isdisjoint(query.spellings()):
        names.append("Link")
    if route.status == 201:
        names.append("Location")
    if route.keeps_answer:
        names.append("Idempotency-Replayed")
    return names


def _parameter(name: str) -> dict[str, Any]:
    """A header of the request. It has no example: Swagger UI would send that with every request that is tried out."""
    schema: dict[str, Any] = {"type": "string"}
    if name in _LONGEST:
        schema |= {"minLength": 1, "maxLength": _LONGEST[name], "pattern": _PRINTABLE}
    return {"name": name, "in": "header", "required": False, "description": _REQUEST[name], "schema": schema}


def _usual_errors(route: Route) -> set[int]:
    """What the declaration implies. 400: X-Transaction-ID is checked everywhere. 503: keys are looked up. 409: whatever is written
    may lose a race, and an Idempotency-Key may be in use."""
    found = {400}
    if route.permission.roles:
        found |= {401, 403, 503}
    if route.absent == 404:
        found.add(404)
    if route.rules.respond is not None:
        found.add(409)
    if route.if_match:
        found.add(412)
    if route.method not in _WRITES and "ETag" in _headers_of_success(route):
        found.add(304)
    if route.method in _WRITES:
        found.add(413)
    if route.signature.body is not None:
        found.add(415)
    return found


def _error_content(surface: Surface) -> dict[str, Any]:
    model = surface.error_model
    return {"content": {surface.error_type: {"schema": {"type": "string"} if model is None else reference(model.__name__)}}}


def _body_text(route: Route) -> str:
    model = route.response_model
    if route.rules.media_type != _JSON or model is None:
        return f"`{route.rules.media_type}`"
    if get_origin(model) in (list, tuple):
        return f"a list of {_words(get_args(model)[0])}"
    return f"one {_words(model)}"


def _words(model: Any) -> str:
    """The words of a class name: `EventType` is "event type"."""
    name = getattr(model, "__name__", "object").removesuffix("Wire")
    return " ".join(_HUMP.split(name)).lower() if name[1:] != name[1:].upper() else name

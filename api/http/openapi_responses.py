"""Headers and statuses of the OpenAPI document: those of the request, those of the response, and the errors of each route."""

from __future__ import annotations

import re
from typing import Any, Final, get_args, get_origin

from api.http.binding import read_signature
from api.http.openapi_schemas import reference
from api.http.response import JSON_TYPE
from api.http.router import WRITES, RouteSpec
from api.http.surface import Surface

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


def request_headers(spec: RouteSpec) -> list[dict[str, Any]]:
    names, required = ["X-Transaction-ID", "X-Request-ID"], []
    if spec.permission is not None:
        if spec.surface.client_required:
            required.append({**_parameter("client"), "required": True})
        else:
            names.append("client")
    if spec.keeps_answer:
        names.append("Idempotency-Key")
    if spec.if_match:
        names.append("If-Match")
    if spec.method in WRITES:
        names.append("traceparent")
    elif "ETag" in _headers_of_success(spec):
        names.append("If-None-Match")
    if spec.surface.unknown_names == "told":
        names.append("Prefer")
    return [*required, *({"$ref": f"#/components/parameters/{name}"} for name in names)]


def error_responses(spec: RouteSpec) -> dict[int | str, dict[str, Any]]:
    """`default` stands for a fault of the server; FastAPI adds a 422 where it is missing, which is never sent."""
    found = {status: _ERRORS[status] for status in sorted(_usual_errors(spec) - spec.surface.never)}
    found.update(spec.errors)
    content = _error_content(spec.surface)
    responses: dict[int | str, dict[str, Any]] = {
        status: {"description": text, **(content if status >= 400 else {})} for status, text in found.items()
    }
    responses.update({status: {"description": text, "model": spec.response_model} for status, text in spec.answers.items()})
    if spec.absent == 204:
        responses[204] = {"description": "Nothing was found"}
    responses["default"] = {"description": "A fault of the server: 500", **content}
    return responses


def statuses(spec: RouteSpec) -> frozenset[int]:
    """Every status that the operation can give, faults of the server apart. 405 and an unknown path are nobody's."""
    return frozenset(status for status in (spec.status, *error_responses(spec)) if isinstance(status, int))


def success_text(spec: RouteSpec) -> str:
    """The description of the response that a client hopes for."""
    if spec.status == 204:
        return "Done; the response has no body"
    body = _body_text(spec)
    if spec.method not in WRITES:
        return f"The response is {body}"
    return f"{'Added' if spec.status == 201 else 'Done'}; the response is {body}"


def response_headers(spec: RouteSpec, status: str) -> dict[str, dict[str, str]]:
    """References to the headers that a response with this status can have."""
    names = ["X-Transaction-ID"]
    if status == str(spec.status):
        names += _headers_of_success(spec)
        if spec.surface.unknown_names == "told":
            names += ["Warning", "Preference-Applied"]
    elif status == "401":
        names.append("WWW-Authenticate")
    elif status in ("429", "503"):
        names.append("Retry-After")
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _headers_of_success(spec: RouteSpec) -> list[str]:
    names = []
    is_array = get_origin(spec.response_model) is list
    one_resource = spec.media_type == JSON_TYPE and not is_array
    if spec.permission is not None and one_resource and (spec.method in WRITES or read_signature(spec).path):
        names.append("ETag")
    query = read_signature(spec).query
    places = {"pagenumber", "startindex", *(("after",) if is_array else ())}
    if query is not None and not places.isdisjoint(query.spellings()):
        names.append("Link")
    if spec.status == 201:
        names.append("Location")
    if spec.keeps_answer:
        names.append("Idempotency-Replayed")
    return names


def _parameter(name: str) -> dict[str, Any]:
    """A header of the request. It has no example: Swagger UI would send that with every request that is tried out."""
    schema: dict[str, Any] = {"type": "string"}
    if name in _LONGEST:
        schema |= {"minLength": 1, "maxLength": _LONGEST[name], "pattern": _PRINTABLE}
    return {"name": name, "in": "header", "required": False, "description": _REQUEST[name], "schema": schema}


def _usual_errors(spec: RouteSpec) -> set[int]:
    """What the declaration implies. 400: X-Transaction-ID is checked everywhere. 503: keys are looked up. 409: whatever is written
    may lose a race, and an Idempotency-Key may be in use."""
    found = {400}
    if spec.permission is not None:
        found |= {401, 403, 503}
    if spec.absent == 404:
        found.add(404)
    if spec.respond is not None:
        found.add(409)
    if spec.if_match:
        found.add(412)
    if spec.method not in WRITES and "ETag" in _headers_of_success(spec):
        found.add(304)
    if spec.method in WRITES:
        found.add(413)
    if read_signature(spec).body is not None:
        found.add(415)
    return found


def _error_content(surface: Surface) -> dict[str, Any]:
    model = surface.error_model
    return {"content": {surface.error_type: {"schema": {"type": "string"} if model is None else reference(model.__name__)}}}


def _body_text(spec: RouteSpec) -> str:
    model = spec.response_model
    if spec.media_type != JSON_TYPE or model is None:
        return f"`{spec.media_type}`"
    if get_origin(model) in (list, tuple):
        return f"a list of {_words(get_args(model)[0])}"
    return f"one {_words(model)}"


def _words(model: Any) -> str:
    """The words of a class name: `EventType` is "event type"."""
    name = getattr(model, "__name__", "object").removesuffix("Wire")
    return " ".join(_HUMP.split(name)).lower() if name[1:] != name[1:].upper() else name

"""The OpenAPI document: FastAPI's own of the routes, with what FastAPI cannot know: headers, errors, forms and examples.

Schemas are what pydantic makes of the models, in a form that generators of clients understand. A type may name a component of its
own with `x-component`: `{"name": …, "schemas": {name: schema, …}}`. The schemas become components, and the place refers to the
component `name`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import chain
from typing import Any, Final, get_args, get_origin

from fastapi import APIRouter, FastAPI
from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute

from api.http.body import FORM, PLAIN
from api.http.response import JSON_TYPE
from api.http.routing import Route

Schema = dict[str, Any]
COMPONENT: Final = "x-component"
_REF: Final = "#/components/schemas/"
_PRINTABLE: Final = "^[ -~]+$"
_LONGEST: Final = {"X-Transaction-ID": 128, "Idempotency-Key": 255}
_TEXT: Final = {"schema": {"type": "string", "minLength": 1}}
_BASE: Final = re.compile(r"Wire(?=$|-Input$|-Output$)")
_INT64: Final = 2**63
_SESSION: Final = (
    "The session of a browser that has logged in. Only pages of the same origin can use it. Over https the name begins with "
    "`__Host-`; where the address has a port, it ends with `_` and that."
)


@dataclass(frozen=True, slots=True)
class ApiDescription:
    """The texts of an API that are not in its routes."""

    introduction: str = ""
    licence: dict[str, str] | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    path_parameters: Mapping[str, str] = field(default_factory=dict)
    """Texts by the segment before a parameter and the parameter, such as `room/{id}`."""
    request_headers: Mapping[str, str] = field(default_factory=dict)
    response_headers: Mapping[str, tuple[str, Schema]] = field(default_factory=dict)
    errors: Mapping[int, str] = field(default_factory=dict)
    cookie: str | None = None
    """The name of the cookie that browsers may send in place of a key."""

    def text_of(self, parameter: str, *, path: str) -> str | None:
        """Return the description of a path parameter. Its key is a segment before the parameter and the parameter, such as
        `room/{id}`; the nearest segment that has a description counts."""
        segments = path.partition(f"/{{{parameter}}}")[0].split("/")
        keys = [f"{segment}/{{{parameter}}}" for segment in reversed(segments)]
        return next((self.path_parameters[key] for key in keys if key in self.path_parameters), None)

    def parameter(self, name: str) -> Schema:
        """Return a header of the request. It has no example: Swagger UI would send that with every request that is tried out."""
        schema: Schema = {"type": "string"}
        if name in _LONGEST:
            schema |= {"minLength": 1, "maxLength": _LONGEST[name], "pattern": _PRINTABLE}
        return {
            "name": name,
            "in": "header",
            "required": False,
            "description": self.request_headers.get(name, ""),
            "schema": schema,
        }


def describe(routers: Iterable[APIRouter], *, title: str, version: str, about: ApiDescription | None = None) -> dict[str, Any]:
    """Return the OpenAPI document of routers that no application has yet."""
    about = about or ApiDescription()
    described = FastAPI(title=title, version=version, description=about.introduction, license_info=about.licence, openapi_url=None)
    for router in routers:
        described.router.routes.extend(router.routes)
    return corrected(described.openapi(), described.routes, about)


def corrected(document: dict[str, Any], declared: Sequence[BaseRoute], about: ApiDescription) -> dict[str, Any]:
    """Return FastAPI's document with what it cannot know of our routes. It may be empty of paths."""
    routes = _documented(declared)
    document["servers"] = [{"url": "/", "description": "The server that this document comes from"}]
    used = dict.fromkeys(tag for route in routes.values() for tag in map(str, route.tags))
    document["tags"] = [{"name": tag, "description": about.tags[tag]} if tag in about.tags else {"name": tag} for tag in used]
    components = document.setdefault("components", {})
    components["parameters"] = {name: about.parameter(name) for name in about.request_headers}
    components["headers"] = {
        name: {"description": text, "schema": schema} for name, (text, schema) in about.response_headers.items()
    }
    if about.cookie is not None and "securitySchemes" in components:
        session = {"type": "apiKey", "description": _SESSION, "in": "cookie", "name": about.cookie}
        components["securitySchemes"]["session"] = session
    schemas = components.setdefault("schemas", {})
    for (path, method), route in routes.items():
        _correct(document["paths"][path][method], route, path=path, schemas=schemas, about=about)
    _polish(document)
    return document


def _documented(declared: Sequence[BaseRoute]) -> dict[tuple[str, str], Route]:
    """Return our routes by path and method. Clients name their methods after the operations, so each name must be unique."""
    routes: dict[tuple[str, str], Route] = {}
    names: set[str] = set()
    for context in iter_route_contexts(declared):
        route = context.original_route
        if isinstance(route, Route) and context.include_in_schema:
            if route.unique_id in names:
                raise ValueError(f"{route.where}: another operation has the same name")
            names.add(route.unique_id)
            routes[str(context.path_format), route.method.lower()] = route
    return routes


def _correct(operation: dict[str, Any], route: Route, *, path: str, schemas: dict[str, Schema], about: ApiDescription) -> None:
    """Correct one operation: its parameters and headers, its body in every media type, and its responses."""
    with_session = about.cookie is not None and route.surface.sessions
    keys: list[dict[str, list[str]]] = [{"API-KEY": []}, *([{"session": list[str]()}] if with_session else [])]
    operation["security"] = keys if route.roles else []
    parameters = operation.setdefault("parameters", [])
    for parameter in parameters:
        parameter["schema"] = _not_null(parameter["schema"])
        if parameter["in"] == "path" and (text := about.text_of(parameter["name"], path=path)) is not None:
            parameter["description"] = parameter["schema"]["description"] = text
    parameters.extend(_request_headers(route, about))
    _correct_body(operation, route, schemas=schemas)
    responses = operation["responses"]
    if "422" not in map(str, route.responses):  # FastAPI promises it, and it is never sent
        responses.pop("422", None)
    answer = responses[str(route.status)]
    answer["description"] = _success(route)
    if route.rules.media_type != JSON_TYPE and route.status != 204:
        schema = answer.get("content", {}).get(JSON_TYPE, {}).get("schema", {"type": "string"})
        answer["content"] = {route.rules.media_type: {"schema": schema}}
    model = route.surface.error_model
    error: Schema = {"type": "string"}
    if model is not None:
        error = reference(model.__name__)
        if model.__name__ not in schemas:
            schema = model.model_json_schema(ref_template=reference("{model}")["$ref"])
            schemas.update(schema.pop("$defs", {}))
            schemas[model.__name__] = schema
    content = {"content": {route.surface.error_type: {"schema": error}}}
    for status in sorted(_errors(route)):
        text = route.rules.errors.get(status, about.errors.get(status, ""))
        responses[str(status)] = {"description": text, **(content if status >= 400 else {})}
    if route.absent == 204:
        responses["204"] = {"description": "Nothing was found"}
    responses["default"] = {"description": "A fault of the server: 500", **content}
    for status, response in responses.items():
        response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in _response_headers(route, status)}


def statuses(route: Route) -> frozenset[int]:
    """Return every status that the operation can give, apart from faults of the server, 405, and 404 for an unknown path."""
    absent = {204} if route.absent == 204 else set()
    return frozenset({route.status, *_errors(route), *route.rules.answers, *absent})


def _errors(route: Route) -> set[int]:
    """Return the errors that the declaration of a route implies.

    X-Transaction-ID is checked everywhere (400), keys are looked up in the database (503), and whatever is written may lose a race,
    or its Idempotency-Key may be in use (409)."""
    errors = {400}
    if route.roles:
        errors |= {401, 403, 503}
    if route.absent == 404:
        errors.add(404)
    if route.rules.respond is not None:
        errors.add(409)
    if route.if_match:
        errors.add(412)
    if route.writes:
        errors.add(413)
    elif "ETag" in _headers_of_success(route):
        errors.add(304)
    if route.signature.body is not None:
        errors.add(415)
    return errors - route.surface.never | set(route.rules.errors)


def _request_headers(route: Route, about: ApiDescription) -> list[Schema]:
    names, required = ["X-Transaction-ID", "X-Request-ID"], []
    if route.roles and route.surface.client_required:
        required.append({**about.parameter("client"), "required": True})
    elif route.roles:
        names.append("client")
    if route.keeps_answer:
        names.append("Idempotency-Key")
    if route.if_match:
        names.append("If-Match")
    if route.writes:
        names.append("traceparent")
    elif "ETag" in _headers_of_success(route):
        names.append("If-None-Match")
    if route.surface.unknown_names == "told":
        names.append("Prefer")
    return [*required, *({"$ref": f"#/components/parameters/{name}"} for name in names)]


def _response_headers(route: Route, status: str) -> list[str]:
    names = ["X-Transaction-ID"]
    if status == str(route.status):
        names += _headers_of_success(route)
        if route.surface.unknown_names == "told":
            names += ["Warning", "Preference-Applied"]
    elif status == "401":
        names.append("WWW-Authenticate")
    elif status in ("429", "503"):
        names.append("Retry-After")
    return names


def _headers_of_success(route: Route) -> list[str]:
    names = []
    is_array = get_origin(route.response_model) is list
    one_resource = route.rules.media_type == JSON_TYPE and not is_array
    if route.roles and one_resource and (route.writes or route.signature.path):
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


def _success(route: Route) -> str:
    """Return the description of the response that a client hopes for, such as "Created: Event"."""
    model, is_array = route.response_model, get_origin(route.response_model) is list
    name = getattr(get_args(model)[0] if is_array else model, "__name__", route.rules.media_type).removesuffix("Wire")
    phrase = HTTPStatus(route.status).phrase
    return phrase if route.status == 204 else f"{phrase}: {'a list of ' if is_array else ''}{name}"


def _correct_body(operation: dict[str, Any], route: Route, *, schemas: dict[str, Schema]) -> None:
    body, body_type, example = operation.get("requestBody"), route.signature.body_type, route.rules.example
    media_types = list(chain.from_iterable(route.rules.body_types))
    for model in (body_type, *get_args(body_type)):  # FastAPI leaves out every null, also those of examples
        extra = getattr(model, "model_config", {}).get("json_schema_extra")
        if isinstance(extra, dict) and "examples" in extra and model.__name__ in schemas:
            schemas[model.__name__]["examples"] = extra["examples"]
    if body is not None and body_type is not bytes:
        content = body["content"].pop(JSON_TYPE)
        example = _example(content["schema"], schemas) if example is None else example
        form = _form(content["schema"], schemas) if FORM in route.rules.body_types else content
        if example is not None:
            content["example"] = example
        body["content"] = {name: form if name in FORM else content for name in media_types}
        body["content"].update((name, _TEXT) for name in media_types if name in PLAIN)
    elif route.signature.body is not None:
        text: dict[str, Any] = {"schema": {"type": "string"}, **({} if example is None else {"example": example})}
        operation["requestBody"] = {"required": True, "content": dict.fromkeys(media_types, text)}


def _example(schema: Schema, schemas: dict[str, Schema]) -> Any:
    """Return the first example of the body's model; without one, the first examples of its fields."""
    if schema.get("examples"):
        return schema["examples"][0]
    names = (_component(option) for option in (schema, *schema.get("anyOf", ())))
    model = next((schemas[name] for name in names if name in schemas), None)
    if model is None:
        items = _example(schema["items"], schemas) if schema.get("type") == "array" else None
        return None if items is None else [items]
    if model.get("examples"):
        return model["examples"][0]
    fields = {name: each["examples"][0] for name, each in model.get("properties", {}).items() if each.get("examples")}
    return fields if fields and fields.keys() >= set(model.get("required", ())) else None


def reference(name: str) -> Schema:
    """Return a reference to a component."""
    return {"$ref": f"{_REF}{name}"}


def _component(schema: Schema) -> str:
    """Return the name of the component that a schema refers to, or an empty text."""
    return str(schema.get("$ref", "")).removeprefix(_REF)


def _not_null(schema: Schema) -> Schema:
    """Return the schema of a value in a query. It is text: it can be absent, but it cannot be null."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == len(schema.get("anyOf", ())):
        return schema
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    return {**options[0], **rest} if len(options) == 1 else {**rest, "anyOf": options}


def _form(schema: Schema, schemas: dict[str, Schema]) -> dict[str, Any]:
    """Return the same model as a form. A list of objects is JSON text there."""
    fields = schemas[_component(schema)]["properties"]
    texts = {
        name: {"contentType": JSON_TYPE}
        for name, each in fields.items()
        if any("$ref" in option.get("items", {}) for option in (each, *each.get("anyOf", ())))
    }
    return {"schema": dict(schema), **({"encoding": texts} if texts else {})}


def _polish(document: dict[str, Any]) -> None:
    """Correct every schema of the document in place."""
    schemas = document["components"].setdefault("schemas", {})
    named: dict[str, Schema] = {}
    for node in list(_nodes(document)):
        component = node.pop(COMPONENT, None)
        if component is not None:
            named.update(component["schemas"])
            node.update(reference(component["name"]))
    schemas.update(named)
    enums = {tuple(schema["enum"]): name for name, schema in named.items() if schema.get("type") == "string"}
    for node in list(_nodes(document)):
        _correct_schema(node, enums)
    for schema in schemas.values():
        # Generators of TypeScript take a field with a default for a required one, since they make one type for both directions.
        for each in schema.get("properties", {}).values():
            each.pop("default", None)
    _rename(document, schemas)
    _prune(document, schemas)


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of the document but its examples, which are data."""
    if isinstance(tree, dict):
        yield tree
        for name, value in tree.items():
            if name not in ("example", "examples", "default") or (name == "default" and isinstance(value, dict)):
                yield from _nodes(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _nodes(value)


def _correct_schema(node: dict[str, Any], enums: Mapping[tuple[str, ...], str]) -> None:
    """Remove titles that repeat a name and bounds of int64 that a double cannot hold. Correct what generators of clients misread:
    objects of any members, a null that has no other type, and enumerations that a named one has too."""
    if node.get("type") == "object" and not node.keys() & {"properties", "additionalProperties", "allOf", "anyOf", "oneOf"}:
        node["additionalProperties"] = True
    for each in _fields(node):
        each.pop("title", None)
        if each.get("type") == "null":
            each["type"] = ["string", "null"]
    for bound in ("minimum", "maximum"):
        value = node.get(bound)
        if isinstance(value, int | float):
            if node.get("format") == "int64" and abs(value) >= _INT64 - 1:
                del node[bound]
            elif float(value).is_integer():
                node[bound] = int(value)
    for each in _fields(node):
        for schema in (each, each.get("items"), *each.get("anyOf", ())):
            if isinstance(schema, dict) and (name := enums.get(tuple(schema.get("enum", ())))):
                del schema["enum"], schema["type"]
                schema.update(reference(name))


def _fields(node: dict[str, Any]) -> Iterator[Schema]:
    properties = node.get("properties")
    if isinstance(properties, dict) and "properties" not in properties.get("properties", {}):
        yield from (each for each in properties.values() if isinstance(each, dict))
    if "in" in node and isinstance(node.get("schema"), dict):
        yield node["schema"]


def _rename(document: dict[str, Any], schemas: dict[str, Schema]) -> None:
    """Name each component after its class, without the `Wire` that some classes end in."""
    renamed: dict[str, str] = {}
    for name in schemas:
        plain = _BASE.sub("", name).replace("-", "")
        if "__" in name or plain in renamed.values():
            raise ValueError(f"two models have the same name in the API description: {name}")
        renamed[name] = plain
    for node in _nodes(document):
        if isinstance(node.get("$ref"), str) and (name := _component(node)) in renamed:
            node.update(reference(renamed[name]))
    for name, schema in list(schemas.items()):
        del schemas[name]
        schemas[renamed[name]] = {**schema, "title": renamed[name]}


def _prune(document: dict[str, Any], schemas: dict[str, Schema]) -> None:
    """Remove the components that nothing refers to."""
    rest = {name: part for name, part in document.items() if name != "components"}
    others = {name: part for name, part in document["components"].items() if name != "schemas"}
    used: set[str] = set()
    pending = [_component(node) for node in _nodes([rest, others])]
    while pending:
        name = pending.pop()
        if name in schemas and name not in used:
            used.add(name)
            pending += [_component(node) for node in _nodes(schemas[name])]
    for name in schemas.keys() - used:
        del schemas[name]

"""The OpenAPI document: FastAPI's own of the routes, corrected where FastAPI cannot know: headers, forms next to JSON, examples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, get_args

from fastapi import APIRouter, FastAPI
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel
from starlette.routing import BaseRoute

from api.http.api_description import ApiDescription
from api.http.body import FORM, PLAIN
from api.http.openapi_responses import header_components, parameter_components, request_headers, response_headers
from api.http.openapi_schemas import component_name, form_content, not_null, polish, reference
from api.http.response import JSON_TYPE
from api.http.routing import Route
from api.http.surface import Surface

_TEXT: Final = {"schema": {"type": "string", "minLength": 1}}
_SESSION: Final = (
    "The session of a browser that has logged in. Only pages of the same origin can use it. Over https the name begins with "
    "`__Host-`; where the address has a port, it ends with `_` and that."
)


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
    components["parameters"] = parameter_components()
    components["headers"] = header_components()
    schemas = components.setdefault("schemas", {})
    _name_session(components, about)
    for (path, method), route in routes.items():
        _restore_examples(route, schemas)
        operation = document["paths"][path][method]
        _describe_path(operation, path, about)
        operation["security"] = _security(route, about)
        _correct(operation, route, schemas=schemas)
        _add_error_model(schemas, route.surface)
    polish(document)
    return document


def _documented(declared: Sequence[BaseRoute]) -> dict[tuple[str, str], Route]:
    """Return our routes by path and method. Clients name their methods after the operations, so each name must be unique."""
    routes: dict[tuple[str, str], Route] = {}
    names: set[str] = set()
    for context in iter_route_contexts(declared):
        route = context.original_route
        if not isinstance(route, Route) or not context.include_in_schema:
            continue
        if route.unique_id in names:
            raise ValueError(f"{route.where}: another operation has the same name")
        names.add(route.unique_id)
        routes[str(context.path_format), route.method.lower()] = route
    return routes


def _name_session(components: dict[str, Any], about: ApiDescription) -> None:
    if about.cookie is not None and "securitySchemes" in components:
        session = {"type": "apiKey", "description": _SESSION, "in": "cookie", "name": about.cookie}
        components["securitySchemes"]["session"] = session


def _security(route: Route, about: ApiDescription) -> list[dict[str, list[str]]]:
    """A key or, where the surface takes them, a session. An open call says that it needs no key."""
    if not route.permission.roles:
        return []
    with_session = about.cookie is not None and route.surface.sessions
    return [{"API-KEY": []}, *([{"session": list[str]()}] if with_session else [])]


def _describe_path(operation: dict[str, Any], path: str, about: ApiDescription) -> None:
    for parameter in operation.get("parameters", ()):
        text = about.path_parameters.get(_place(path, parameter["name"]))
        if parameter["in"] == "path" and text is not None:
            parameter["description"] = parameter["schema"]["description"] = text


def _place(path: str, name: str) -> str:
    """The parameter with the segment before it: `room/{id}`."""
    before, _, _ = path.partition(f"/{{{name}}}")
    return f"{before.rpartition('/')[2]}/{{{name}}}"


def _add_error_model(schemas: dict[str, Any], surface: Surface) -> None:
    model: type[BaseModel] | None = surface.error_model
    if model is not None and model.__name__ not in schemas:
        schema = model.model_json_schema(ref_template=reference("{model}")["$ref"])
        schemas.update(schema.pop("$defs", {}))
        schemas[model.__name__] = schema


def _restore_examples(route: Route, schemas: dict[str, Any]) -> None:
    """FastAPI leaves out every null, also those of examples."""
    body_type = route.signature.body_type
    for model in (body_type, *get_args(body_type)):
        extra = getattr(model, "model_config", {}).get("json_schema_extra")
        if isinstance(extra, dict) and "examples" in extra and model.__name__ in schemas:
            schemas[model.__name__]["examples"] = extra["examples"]


def _correct(operation: dict[str, Any], route: Route, *, schemas: dict[str, Any]) -> None:
    """The headers of every call, each accepted media type beside JSON, and the real media type of the response."""
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = not_null(parameter["schema"])
    operation.setdefault("parameters", []).extend(request_headers(route))
    _correct_body(operation, route, schemas=schemas)
    answer = operation["responses"].get(str(route.status), {})
    if route.rules.media_type != JSON_TYPE and route.status != 204:
        schema = answer.get("content", {}).get(JSON_TYPE, {}).get("schema", {"type": "string"})
        answer["content"] = {route.rules.media_type: {"schema": schema}}
    for status, response in operation["responses"].items():
        response["headers"] = response_headers(route, status)


def _correct_body(operation: dict[str, Any], route: Route, *, schemas: dict[str, Any]) -> None:
    media_types = [name for body_type in route.rules.body_types for name in body_type.media_types]
    body = operation.get("requestBody")
    if body is not None and route.signature.body_type is not bytes:
        content = body["content"].pop(JSON_TYPE)
        example = _example(content["schema"], schemas) if route.rules.example is None else route.rules.example
        form = form_content(content["schema"], schemas) if FORM in route.rules.body_types else content
        if example is not None:
            content["example"] = example
        body["content"] = {name: form if name in FORM.media_types else content for name in media_types}
        body["content"].update((name, _TEXT) for name in media_types if name in PLAIN.media_types)
    elif route.signature.body is not None:
        text: dict[str, Any] = {"schema": {"type": "string"}}
        if route.rules.example is not None:
            text["example"] = route.rules.example
        operation["requestBody"] = {"required": True, "content": dict.fromkeys(media_types, text)}


def _example(schema: dict[str, Any], schemas: dict[str, Any]) -> Any:
    """The first example of the body's model; without one, the first examples of its fields."""
    if schema.get("examples"):
        return schema["examples"][0]
    model = next(
        (schemas[name] for option in (schema, *schema.get("anyOf", ())) if (name := component_name(option)) in schemas), None
    )
    if model is None:
        items = _example(schema["items"], schemas) if schema.get("type") == "array" else None
        return None if items is None else [items]
    if model.get("examples"):
        return model["examples"][0]
    fields = {name: field["examples"][0] for name, field in model.get("properties", {}).items() if field.get("examples")}
    return fields if fields and fields.keys() >= set(model.get("required", ())) else None

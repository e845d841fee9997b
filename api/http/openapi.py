"""The OpenAPI document: FastAPI describes the routes, from the same declarations that serve them.

FastAPI never sees a request. It is given stubs with the signatures of the endpoints; its description is then corrected where it
cannot know: statuses, headers, forms beside JSON, names of operations and models."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Annotated, Any, Final, get_args

from fastapi import Body, FastAPI, Path, Query, Security
from fastapi.responses import JSONResponse
from fastapi.responses import Response as PlainResponse
from fastapi.security import APIKeyCookie, APIKeyHeader
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from api.http.api_description import ApiDescription
from api.http.binding import Signature, read_signature
from api.http.body import FORM, PLAIN
from api.http.openapi_responses import (
    error_responses,
    header_components,
    parameter_components,
    request_headers,
    response_headers,
    success_text,
)
from api.http.openapi_schemas import component_name, form_content, not_null, polish, reference
from api.http.response import JSON_TYPE
from api.http.router import Router, RouteSpec
from api.http.surface import Surface

_TEXT: Final = {"schema": {"type": "string", "minLength": 1}}
_KEY: Final = (
    "An API key of a client. X-Auth-Key, and Authorization: Bearer, are accepted in its place; where API-KEY and X-Auth-Key are "
    "both there, API-KEY counts. The client must have a role that may make the call."
)
_SESSION: Final = (
    "The session of a browser that has logged in. Only pages of the same origin can use it. Over https the name begins with "
    "`__Host-`; where the address has a port, it ends with `_` and that."
)


def describe(routes: Iterable[Router], *, title: str, version: str, about: ApiDescription | None = None) -> dict[str, Any]:
    """The OpenAPI document as a dictionary."""
    about = about or ApiDescription()
    specs = [spec for router in routes for spec in router.specs if spec.documented]
    described = FastAPI(title=title, version=version, description=about.introduction, license_info=about.licence)
    for spec in specs:
        _register(described, spec, about=about)
    document: dict[str, Any] = described.openapi()
    document["servers"] = [{"url": "/", "description": "The server that this document comes from"}]
    used = dict.fromkeys(spec.tag for spec in specs)
    document["tags"] = [{"name": tag, "description": about.tags[tag]} if tag in about.tags else {"name": tag} for tag in used]
    components = document.setdefault("components", {})
    components["parameters"] = parameter_components()
    components["headers"] = header_components()
    schemas = components.setdefault("schemas", {})
    names = _operation_ids(specs)
    for spec in specs:
        _restore_examples(spec, schemas)
        operation = document["paths"][spec.documented_path][spec.method.lower()]
        operation["operationId"] = names[spec.method, spec.path]
        _correct(operation, spec, schemas=schemas)
        _add_error_model(schemas, spec.surface)
    polish(document)
    return document


def _operation_ids(specs: Iterable[RouteSpec]) -> dict[tuple[str, str], str]:
    """The name of the endpoint's function in camel case; clients call their methods so."""
    names: dict[tuple[str, str], str] = {}
    for spec in specs:
        name = to_camel(spec.name)
        if name in names.values():
            raise ValueError(f"{spec.where}: another operation has the same name")
        names[spec.method, spec.path] = name
    return names


def _register(described: FastAPI, spec: RouteSpec, *, about: ApiDescription) -> None:
    signature = read_signature(spec)
    typed = spec.response_model is not None
    described.add_api_route(
        spec.documented_path,
        _stub(spec, signature, about=about),
        methods=[spec.method],
        name=spec.name,
        summary=spec.summary,
        description=spec.description or None,
        tags=[spec.tag],
        status_code=spec.status,
        response_model=spec.response_model,
        response_class=JSONResponse if typed and spec.status != 204 else PlainResponse,
        response_description=success_text(spec),
        responses=error_responses(spec),
        dependencies=_security(spec, about),
    )


def _security(spec: RouteSpec, about: ApiDescription) -> list[Any]:
    """A key or, where the surface takes them, a session."""
    if spec.permission is None:
        return []
    schemes: list[Any] = [APIKeyHeader(name="API-KEY", scheme_name="API-KEY", description=_KEY, auto_error=False)]
    if about.cookie is not None and spec.surface.sessions:
        schemes.append(APIKeyCookie(name=about.cookie, scheme_name="session", description=_SESSION, auto_error=False))
    return [Security(scheme) for scheme in schemes]


def _stub(spec: RouteSpec, signature: Signature, *, about: ApiDescription) -> Any:
    """A function that is never called; FastAPI reads its signature only."""

    async def stub() -> None: ...

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = []
    for spelled, kind in signature.path.values():
        text = about.path_parameters.get(_place(spec.documented_path, spelled))
        parameters.append(inspect.Parameter(spelled, keyword, annotation=Annotated[kind, Path(description=text)]))
    if signature.query is not None:
        parameters.append(inspect.Parameter("query", keyword, annotation=Annotated[signature.query, Query()]))
    if signature.body is not None and signature.body_type is not bytes:
        model: Any = signature.body_type
        annotation = Annotated[model, Body()]
        parameters.append(inspect.Parameter("body", keyword, default=signature.body.default, annotation=annotation))
    stub.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    stub.__name__ = spec.name
    return stub


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


def _restore_examples(spec: RouteSpec, schemas: dict[str, Any]) -> None:
    """FastAPI leaves out every null, also those of examples."""
    body_type = read_signature(spec).body_type
    for model in (body_type, *get_args(body_type)):
        extra = getattr(model, "model_config", {}).get("json_schema_extra")
        if isinstance(extra, dict) and "examples" in extra and model.__name__ in schemas:
            schemas[model.__name__]["examples"] = extra["examples"]


def _correct(operation: dict[str, Any], spec: RouteSpec, *, schemas: dict[str, Any]) -> None:
    """The headers of every call, each accepted media type beside JSON, and the real media type of the response."""
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = not_null(parameter["schema"])
    operation.setdefault("parameters", []).extend(request_headers(spec))
    operation.setdefault("security", [])  # an open call says that it needs no key
    _correct_body(operation, spec, schemas=schemas)
    answer = operation["responses"].get(str(spec.status), {})
    if spec.media_type != JSON_TYPE and spec.status != 204:
        schema = answer.get("content", {}).get(JSON_TYPE, {}).get("schema", {"type": "string"})
        answer["content"] = {spec.media_type: {"schema": schema}}
    for status, response in operation["responses"].items():
        response["headers"] = response_headers(spec, status)


def _correct_body(operation: dict[str, Any], spec: RouteSpec, *, schemas: dict[str, Any]) -> None:
    media_types = [name for body_type in spec.body_types for name in body_type.media_types]
    body = operation.get("requestBody")
    if body is not None:
        content = body["content"].pop(JSON_TYPE)
        example = _example(content["schema"], schemas) if spec.example is None else spec.example
        form = form_content(content["schema"], schemas) if FORM in spec.body_types else content
        if example is not None:
            content["example"] = example
        body["content"] = {name: form if name in FORM.media_types else content for name in media_types}
        body["content"].update((name, _TEXT) for name in media_types if name in PLAIN.media_types)
    elif read_signature(spec).body is not None:
        text: dict[str, Any] = {"schema": {"type": "string"}}
        if spec.example is not None:
            text["example"] = spec.example
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

"""`/openapi.json` and `/docs`: FastAPI describes what our dispatcher serves, from the same declarations.

FastAPI never sees a request. It gets stubs whose signatures say what the declarations say, its description is then brought
in line with what it cannot know: 400 instead of 422, problem bodies, forms beside JSON."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import Body, FastAPI, Path, Query, Response, Security
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import JSONResponse
from fastapi.security import APIKeyHeader
from pydantic import BaseModel
from pydantic_core import to_json

from api.kernel.answer import JSON_TYPE, Answer
from api.kernel.auth import OPEN
from api.kernel.bind import Signature, read_signature
from api.kernel.body import FORM, PLAIN
from api.kernel.call import Call
from api.kernel.routes import Declaration, Routes
from api.kernel.surface import OPERATIONS, Surface

_REF = "#/components/schemas/{model}"
_WRITES = ("POST", "PUT", "PATCH", "DELETE")
_HEADERS = {
    "X-Transaction-ID": "1 to 128 printable ASCII characters; echoed, and the correlation id of what the request causes",
    "Idempotency-Key": "1 to 255 printable ASCII characters; the same request sent again gets the first answer again",
    "If-Match": "The ETag that the change is meant for; any other version is 412",
    "client": "The client that the API key belongs to",
}
_LONGEST = {"X-Transaction-ID": 128, "Idempotency-Key": 255}
_PRINTABLE = "^[ -~]+$"
_TEXT = {"schema": {"type": "string", "minLength": 1}}
_ERRORS = {
    400: "The request cannot be understood; nothing was changed",
    401: "No API key, or a wrong one",
    403: "The API key lacks the role",
    404: "There is no such thing",
    409: "A rule or a concurrent change stands against it",
    412: "If-Match names another version",
    413: "The body is too large",
    415: "The content type is not accepted",
    503: "A dependency is down; see Retry-After",
}


class Documentation:
    """Made when first asked for, off the event loop: with some 170 routes it takes a moment that no request should wait."""

    def __init__(self, routes: Iterable[Routes], *, title: str, version: str) -> None:
        self._routes = list(routes)
        self._title = title
        self._version = version
        self._json: bytes | None = None

    def routes(self) -> Routes:
        routes = Routes(surface=OPERATIONS)

        @routes.get("/openapi.json", OPEN, documented=False)
        async def openapi_document(call: Call) -> Answer:
            if self._json is None:
                self._json = await asyncio.to_thread(self._render)
            return Answer(body=self._json)

        @routes.get("/docs", OPEN, documented=False)
        async def swagger_ui(call: Call) -> Answer:
            page = get_swagger_ui_html(openapi_url="/openapi.json", title=self._title)
            return Answer(body=bytes(page.body), media_type="text/html; charset=utf-8")

        return routes

    def _render(self) -> bytes:
        return to_json(describe(self._routes, title=self._title, version=self._version))


def describe(routes: Iterable[Routes], *, title: str, version: str) -> dict[str, Any]:
    """The OpenAPI document as a dictionary."""
    declarations = [one for declared in routes for one in declared.declarations if one.documented]
    fastapi = FastAPI(title=title, version=version)
    for declaration in declarations:
        _register(fastapi, declaration)
    document: dict[str, Any] = fastapi.openapi()
    components = document.setdefault("components", {})
    components["parameters"] = {name: _header(name, text) for name, text in _HEADERS.items()}
    schemas = components.setdefault("schemas", {})
    names: Counter[str] = Counter()
    for declaration in declarations:
        operation = document["paths"][declaration.path][declaration.method.lower()]
        _correct(operation, declaration, schemas=schemas)
        name = f"{declaration.tag}_{declaration.name}"
        names[name] += 1
        operation["operationId"] = name if names[name] == 1 else f"{name}_{names[name]}"
        _add_error_model(schemas, declaration.surface)
    for leftover in ("HTTPValidationError", "ValidationError"):
        schemas.pop(leftover, None)
    return document


def _register(fastapi: FastAPI, declaration: Declaration) -> None:
    signature = read_signature(declaration)
    typed = declaration.answers is not None
    fastapi.add_api_route(
        declaration.path,
        _stub(declaration, signature),
        methods=[declaration.method],
        name=declaration.name,
        summary=declaration.summary,
        description=declaration.description or None,
        tags=[declaration.tag],
        status_code=declaration.status,
        response_model=declaration.answers,
        response_class=JSONResponse if typed and declaration.status != 204 else Response,
        responses=_responses(declaration, signature),
        dependencies=[] if declaration.permission is None else [Security(_key_scheme())],
    )


def _not_null(schema: dict[str, Any]) -> dict[str, Any]:
    """What stands in a query or a form is text: it can be left out, and it cannot be null."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == len(schema.get("anyOf", ())):
        return schema
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    return {**options[0], **rest} if len(options) == 1 else {**rest, "anyOf": options}


def _form(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """The same fields as in JSON. The empty value is null, and a list of objects is JSON text."""
    model = schemas[schema["$ref"].rpartition("/")[2]]
    fields = {name: _not_null(field) for name, field in model["properties"].items()}
    for name, field in fields.items():
        if "$ref" in field.get("items", {}):
            fields[name] = {"type": "string", "contentMediaType": JSON_TYPE, "title": field["title"]}
    return {"schema": {**model, "properties": fields}}


def _key_scheme() -> APIKeyHeader:
    return APIKeyHeader(name="API-KEY", scheme_name="API-KEY", auto_error=False)


def _stub(declaration: Declaration, signature: Signature) -> Any:
    """A function that is never called; FastAPI reads its signature only."""

    async def stub() -> None: ...

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter(spelled, keyword, annotation=Annotated[kind, Path()]) for spelled, kind in signature.path.values()
    ]
    if signature.query is not None:
        parameters.append(inspect.Parameter("query", keyword, annotation=Annotated[signature.query, Query()]))
    if signature.body is not None and signature.body_type is not bytes:
        kind: Any = signature.body_type
        annotation = Annotated[kind, Body()]
        parameters.append(inspect.Parameter("body", keyword, default=signature.body.default, annotation=annotation))
    stub.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    stub.__name__ = declaration.name
    return stub


def _responses(declaration: Declaration, signature: Signature) -> dict[int | str, dict[str, Any]]:
    """`default` stands for what may always happen; it also keeps FastAPI from adding a 422 that nobody sends."""
    statuses = [400]
    if declaration.permission is not None:
        statuses += [401, 403]
    if signature.path and declaration.absent == 404:
        statuses.append(404)
    if declaration.method in _WRITES:
        statuses += [409, 412, 503]
    if signature.body is not None:
        statuses += [413, 415]
    errors = _error_content(declaration.surface)
    responses: dict[int | str, dict[str, Any]] = {status: {"description": _ERRORS[status], **errors} for status in sorted(statuses)}
    if declaration.absent == 204:
        responses[204] = {"description": "There is no such thing"}
    responses["default"] = {"description": "Any other error", **errors}
    return responses


def _error_content(surface: Surface) -> dict[str, Any]:
    model = surface.error_model
    schema = {"type": "string"} if model is None else {"$ref": _REF.format(model=model.__name__)}
    return {"content": {surface.error_type: {"schema": schema}}}


def _add_error_model(schemas: dict[str, Any], surface: Surface) -> None:
    model: type[BaseModel] | None = surface.error_model
    if model is not None and model.__name__ not in schemas:
        schema = model.model_json_schema(ref_template=_REF)
        schemas.update(schema.pop("$defs", {}))
        schemas[model.__name__] = schema


def _header(name: str, description: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if name in _LONGEST:
        schema |= {"minLength": 1, "maxLength": _LONGEST[name], "pattern": _PRINTABLE}
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}


def _headers(declaration: Declaration) -> list[dict[str, Any]]:
    names, required = ["X-Transaction-ID"], []
    if declaration.permission is not None:
        if declaration.surface.client_required:
            required.append({**_header("client", _HEADERS["client"]), "required": True})
        else:
            names.append("client")
    if declaration.keeps_answer:
        names.append("Idempotency-Key")
    if declaration.method in ("PUT", "PATCH", "DELETE"):
        names.append("If-Match")
    return [*required, *({"$ref": f"#/components/parameters/{name}"} for name in names)]


def _correct(operation: dict[str, Any], declaration: Declaration, *, schemas: dict[str, Any]) -> None:
    """The headers of every call, each accepted media type beside JSON, and the real media type of the answer."""
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _not_null(parameter["schema"])
    operation.setdefault("parameters", []).extend(_headers(declaration))
    media_types = [name for body_type in declaration.body_types for name in body_type.media_types]
    body = operation.get("requestBody")
    if body is not None:
        content = body["content"].pop(JSON_TYPE)
        form = _form(content["schema"], schemas) if FORM in declaration.body_types else content
        body["content"] = {name: form if name in FORM.media_types else content for name in media_types}
        body["content"].update((name, _TEXT) for name in media_types if name in PLAIN.media_types)
    elif read_signature(declaration).body is not None:
        schema = {"schema": {"type": "string"}}
        operation["requestBody"] = {"required": True, "content": dict.fromkeys(media_types, schema)}
    answer = operation["responses"].get(str(declaration.status), {})
    if declaration.media_type != JSON_TYPE and declaration.status != 204:
        schema = answer.get("content", {}).get(JSON_TYPE, {}).get("schema", {"type": "string"})
        answer["content"] = {declaration.media_type: {"schema": schema}}

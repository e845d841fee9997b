"""Schemas of the OpenAPI document: what pydantic makes of the models, in a form that generators of clients understand.

A type may name a component of its own with `x-component`: `{"name": …, "schemas": {name: schema, …}}`. The schemas become
components and the place becomes a reference to the component `name`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from api.http.response import JSON_TYPE

Schema = dict[str, Any]
COMPONENT: Final = "x-component"
_REF: Final = "#/components/schemas/"
_LEFTOVERS: Final = ("HTTPValidationError", "ValidationError")
_INT64: Final = 2**63
_BASE: Final = re.compile(r"Wire(?=$|-Input$|-Output$)")


def reference(name: str) -> Schema:
    return {"$ref": f"{_REF}{name}"}


def polish(document: dict[str, Any]) -> None:
    """Corrects every schema of the document in place."""
    schemas = document["components"].setdefault("schemas", {})
    for name in _LEFTOVERS:
        schemas.pop(name, None)
    named: dict[str, Schema] = {}
    for node in list(_nodes(document)):
        _hoist(node, named)
    schemas.update(named)
    enums = {tuple(schema["enum"]): name for name, schema in named.items() if schema.get("type") == "string"}
    for node in list(_nodes(document)):
        _correct(node)
        _use_named_enums(node, enums)
    for schema in schemas.values():
        _leave_out_defaults(schema)
    _rename(document, schemas)
    _prune(document, schemas)


def not_null(schema: Schema) -> Schema:
    """A value in a query or a form is text: it can be left out, but it cannot be null."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == len(schema.get("anyOf", ())):
        return schema
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    return {**options[0], **rest} if len(options) == 1 else {**rest, "anyOf": options}


def form_content(schema: Schema, schemas: dict[str, Schema]) -> dict[str, Any]:
    """The same model as a form. A list of objects is JSON text there."""
    fields = schemas[component_name(schema)]["properties"]
    texts = {name: {"contentType": JSON_TYPE} for name, field in fields.items() if _lists_objects(field)}
    return {"schema": dict(schema), **({"encoding": texts} if texts else {})}


def component_name(schema: Schema) -> str:
    """The name of the component that a schema refers to, or an empty text."""
    return str(schema.get("$ref", "")).removeprefix(_REF)


def _lists_objects(field: Schema) -> bool:
    return any("$ref" in option.get("items", {}) for option in (field, *field.get("anyOf", ())))


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of the document but its examples, which are data."""
    if isinstance(tree, dict):
        yield tree
        for name, value in tree.items():
            if name not in ("example", "examples", "default") or (name == "default" and isinstance(value, dict)):
                yield from _nodes(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _nodes(value)


def _hoist(node: dict[str, Any], named: dict[str, Schema]) -> None:
    component = node.pop(COMPONENT, None)
    if component is not None:
        named.update(component["schemas"])
        node.update(reference(component["name"]))


def _correct(node: dict[str, Any]) -> None:
    """Titles that repeat the name of a field, a null that has no other type, bounds of int64 that a double cannot hold, and objects
    of any members, which generators of TypeScript take for empty ones unless it is said."""
    if node.get("type") == "object" and not node.keys() & {"properties", "additionalProperties", "allOf", "anyOf", "oneOf"}:
        node["additionalProperties"] = True
    for field in _fields(node):
        field.pop("title", None)
        if field.get("type") == "null":
            field["type"] = ["string", "null"]  # generators of clients have no type for null alone
    for bound in ("minimum", "maximum"):
        value = node.get(bound)
        if isinstance(value, int | float):
            if node.get("format") == "int64" and abs(value) >= _INT64 - 1:
                del node[bound]
            elif float(value).is_integer():
                node[bound] = int(value)


def _leave_out_defaults(schema: Schema) -> None:
    """A field with a default is required for generators of TypeScript, since they make one type of a request and its answer. Its
    description says the default."""
    for field in schema.get("properties", {}).values():
        field.pop("default", None)


def _use_named_enums(node: dict[str, Any], enums: dict[tuple[str, ...], str]) -> None:
    """An enumeration that a named one has too is a reference to it."""
    for field in _fields(node):
        for schema in (field, field.get("items"), *field.get("anyOf", ())):
            if isinstance(schema, dict) and (name := enums.get(tuple(schema.get("enum", ())))):
                del schema["enum"], schema["type"]
                schema.update(reference(name))


def _fields(node: dict[str, Any]) -> Iterator[Schema]:
    properties = node.get("properties")
    if isinstance(properties, dict) and "properties" not in properties.get("properties", {}):
        yield from (field for field in properties.values() if isinstance(field, dict))
    if "in" in node and isinstance(node.get("schema"), dict):
        yield node["schema"]


def _rename(document: dict[str, Any], schemas: dict[str, Schema]) -> None:
    """A component is named after its class, without the `Wire` that some classes end in."""
    renamed: dict[str, str] = {}
    for name in schemas:
        if "__" in name:
            raise ValueError(f"two models have the same name: {name}")
        plain = _BASE.sub("", name).replace("-", "")
        if plain in renamed.values():
            raise ValueError(f"two models have the same name in the API description: {plain}")
        renamed[name] = plain
    for node in _nodes(document):
        if isinstance(node.get("$ref"), str) and (name := component_name(node)) in renamed:
            node.update(reference(renamed[name]))
    for name, schema in list(schemas.items()):
        del schemas[name]
        schemas[renamed[name]] = {**schema, "title": renamed[name]}


def _prune(document: dict[str, Any], schemas: dict[str, Schema]) -> None:
    """Leaves out the components that nothing refers to."""
    rest = {name: part for name, part in document.items() if name != "components"}
    others = {name: part for name, part in document["components"].items() if name != "schemas"}
    used: set[str] = set()
    pending = [component_name(node) for node in _nodes([rest, others])]
    while pending:
        name = pending.pop()
        if name in schemas and name not in used:
            used.add(name)
            pending += [component_name(node) for node in _nodes(schemas[name])]
    for name in schemas.keys() - used:
        del schemas[name]

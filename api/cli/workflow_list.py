"""Workflows and their parameters, which are a JSON Schema, as people read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from api.cli.output import JSON, NDJSON, Column, Document, Kind, field, json_line, print_list, print_one
from api.cli.printable import printable

_COLUMNS: Final = (
    Column("name", field("name")),
    Column("parameters", lambda one: [name for name in _properties(one) if name in _required(one)]),
    Column("optional", lambda one: [name for name in _properties(one) if name not in _required(one)], wide=True),
    Column("description", field("description"), Kind.LONG),
)
_PARAMETERS: Final = (
    Column("parameter", field("name")),
    Column("type", field("type")),
    Column("default", field("default")),
    Column("meaning", field("meaning"), Kind.LONG),
)


def print_workflows(found: Sequence[Document], *, form: str) -> None:
    print_list(found, _COLUMNS, form=form, none="no workflows")


def print_workflow(found: Document, *, form: str) -> None:
    if form in (JSON, NDJSON):
        print_one(found, (), form=form)
        return
    print(printable(f"{found.get('name')}: {found.get('description') or 'no description'}"))
    print_list(list(_rows(found)), _PARAMETERS, form=form, none="no parameters")


def _rows(found: Document) -> Iterator[Document]:
    """Those that are required come first, and have no default."""
    known, required = _properties(found), _required(found)
    for name in sorted(known, key=lambda one: one not in required):
        schema = known[name]
        default = "required" if name in required else json_line(schema.get("default"))
        yield {"name": name, "type": _type(schema), "default": default, "meaning": schema.get("description")}


def _type(schema: Mapping[str, Any]) -> str:
    """As JSON Schema names it; choices are joined."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    choices = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(choices, list):
        return " | ".join(dict.fromkeys(_type(one) for one in choices if isinstance(one, Mapping)))
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if schema.get("type") == "array" and isinstance(schema.get("items"), Mapping):
        return f"array of {_type(schema['items'])}"
    kind = schema.get("format") or schema.get("type") or "any"
    return str(kind)


def _properties(found: Document) -> Mapping[str, Mapping[str, Any]]:
    parameters = found.get("parameters")
    known = parameters.get("properties") if isinstance(parameters, Mapping) else None
    return {name: one for name, one in known.items() if isinstance(one, Mapping)} if isinstance(known, Mapping) else {}


def _required(found: Document) -> Sequence[str]:
    parameters = found.get("parameters")
    required = parameters.get("required") if isinstance(parameters, Mapping) else None
    return required if isinstance(required, list) else ()

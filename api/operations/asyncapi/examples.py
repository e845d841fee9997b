"""Example values for schemas of the AsyncAPI document, which show what a message looks like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_REF: Final = "#/components/schemas/"
_FORMATS: Final = {
    "date": "2031-01-02",
    "uuid": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    "date-time": "2031-01-02T03:04:05.000Z",
    "binary": "AAAA",
}


def example_of(schema: Mapping[str, Any], *, shared: Mapping[str, Any], name: str = "value") -> Any:
    """Return a value that fits the schema. The example of a text is the name of its field."""
    if "const" in schema:
        return schema["const"]
    if "default" in schema:
        return schema["default"]
    if "$ref" in schema:
        return example_of(shared[schema["$ref"].removeprefix(_REF)], shared=shared, name=name)
    if "enum" in schema:
        return schema["enum"][0]
    for options in ("anyOf", "allOf"):
        if options in schema:
            return example_of(schema[options][0], shared=shared, name=name)
    return _plain(schema, shared=shared, name=name)


def _plain(schema: Mapping[str, Any], *, shared: Mapping[str, Any], name: str) -> Any:
    kind = schema.get("type")
    if kind == "object":
        fields = schema.get("properties", {})
        return {field: example_of(fields[field], shared=shared, name=field) for field in fields}
    if kind == "array":
        items = schema.get("prefixItems") or [schema.get("items", {})]
        return [example_of(item, shared=shared, name=name) for item in items]
    if kind in ("integer", "number"):
        return max(1, schema.get("minimum", 1))
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    return _text(schema, name)


def _text(schema: Mapping[str, Any], name: str) -> str:
    if "pattern" in schema:
        return "1"  # the patterns are of digits
    return _FORMATS.get(str(schema.get("format")), name)

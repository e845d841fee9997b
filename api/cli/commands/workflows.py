"""`medialedger workflows`: the workflows that jobs run, and their parameters, which are a JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from api.cli.command import TEXT, calls_api, form_option, group
from api.cli.output import JSON, NDJSON, Document, Kind, TableColumn, field, json_line, print_list, print_one
from api.cli.remote.rest_api import RestApi, segment
from api.cli.terminal_text import printable

_COLUMNS: Final = (
    TableColumn("name", field("name")),
    TableColumn("parameters", lambda workflow: [name for name in _properties(workflow) if name in _required(workflow)]),
    TableColumn(
        "optional", lambda workflow: [name for name in _properties(workflow) if name not in _required(workflow)], wide=True
    ),
    TableColumn("description", field("description"), Kind.LONG),
)
_PARAMETERS: Final = (
    TableColumn("parameter", field("name")),
    TableColumn("type", field("type")),
    TableColumn("default", field("default")),
    TableColumn("meaning", field("meaning"), Kind.LONG),
)


@group(
    "workflows",
    examples="""
    medialedger workflows list
    medialedger workflows show vod_ingest
    medialedger workflows show vod_ingest --json
    """,
)
def workflows() -> None:
    """List the workflows, including those of installed packages, and show the parameters that `medialedger jobs submit` takes."""


@workflows.command("list")
@form_option
@calls_api
def list_workflows(api: RestApi, form: str) -> None:
    """List every workflow with a description."""
    print_list(api.documents("/engine/workflows", named=True), _COLUMNS, form=form, none="no workflows")


@workflows.command("show")
@click.argument("name", type=TEXT, metavar="NAME", help="The workflow.")
@form_option
@calls_api
def show_workflow(api: RestApi, *, name: str, form: str) -> None:
    """Show one workflow with its parameters: types, defaults, meanings."""
    workflow = api.document(f"/engine/workflows/{segment(name)}", named=True)
    if form in (JSON, NDJSON):
        print_one(workflow, (), form=form)
        return
    print(printable(f"{workflow.get('name')}: {workflow.get('description') or 'no description'}"))
    print_list(list(_rows(workflow)), _PARAMETERS, form=form, none="no parameters")


def _rows(workflow: Document) -> Iterator[Document]:
    """Yield the parameters, the required ones first. They have no default."""
    properties, required = _properties(workflow), _required(workflow)
    for name in sorted(properties, key=lambda key: key not in required):
        schema = properties[name]
        default = "required" if name in required else json_line(schema.get("default"))
        yield {"name": name, "type": _type(schema), "default": default, "meaning": schema.get("description")}


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type as JSON Schema names it. Alternatives are joined."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    choices = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(choices, list):
        return " | ".join(dict.fromkeys(_type(choice) for choice in choices if isinstance(choice, Mapping)))
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if schema.get("type") == "array" and isinstance(schema.get("items"), Mapping):
        return f"array of {_type(schema['items'])}"
    kind = schema.get("format") or schema.get("type") or "any"
    return str(kind)


def _properties(workflow: Document) -> Mapping[str, Mapping[str, Any]]:
    parameters = workflow.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    return (
        {name: schema for name, schema in properties.items() if isinstance(schema, Mapping)}
        if isinstance(properties, Mapping)
        else {}
    )


def _required(workflow: Document) -> Sequence[str]:
    parameters = workflow.get("parameters")
    required = parameters.get("required") if isinstance(parameters, Mapping) else None
    return required if isinstance(required, list) else ()

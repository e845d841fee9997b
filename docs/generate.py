"""Writes the pages of docs/reference from the code: routes, events, settings, commands, views, and the AsyncAPI document.

`python docs/generate.py` writes them; tests/docs/test_reference.py fails if they are out of date.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from enum import Enum, IntEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin
from uuid import UUID

import yaml
from pydantic import BaseModel
from pydantic_core import from_json, to_json

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # run as a script, not imported by the test
    sys.path.insert(0, str(ROOT))

from api.cli.arguments import EXIT_CODES, GROUPS  # noqa: E402
from api.cli.main import COMMANDS, leaves, parser  # noqa: E402
from api.http.openapi import describe  # noqa: E402
from api.http.routing import Permission, Route, routes_of  # noqa: E402
from api.kernel.auth import Role  # noqa: E402
from api.wiring.catalogue import (  # noqa: E402
    AGGREGATES,
    migrations,
    views,
)
from api.wiring.services import ROUTES, asyncapi  # noqa: E402
from api.wiring.settings import VARIABLES  # noqa: E402
from api.wiring.tracing import VARIABLES as TRACING  # noqa: E402
from domain.kernel.aggregate import AggregateRoot  # noqa: E402
from domain.kernel.event import ENVELOPE, DomainEvent, FirstEvent  # noqa: E402
from domain.record.record import Record  # noqa: E402

REFERENCE = ROOT / "docs" / "reference"
_SAID = "Written by docs/generate.py from the code. Do not edit: run `python docs/generate.py`."
_MARK = f"<!-- {_SAID} -->"
_PLACES: Final = ("url", "context", "local", "key_file")
"""Options that many commands have."""
_WORDS: Mapping[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    date: "date",
    datetime: "date-time",
    UUID: "GUID",
    Any: "any JSON",
}


def main() -> int:
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, made in PAGES.items():
        (REFERENCE / name).write_text(made(), encoding="utf-8")
    return 0


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a Markdown table; characters that would end a cell are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines] + [""]


def code(text: object) -> str:
    return f"`{text}`"


# --- routes


def declarations() -> list[Route]:
    """Return every documented route, in the order in which the product declares them."""
    return [route for route in routes_of(ROUTES) if route.include_in_schema]


def _routes() -> Iterator[str]:
    document = describe(ROUTES, title="medialedger", version="0")
    yield from (
        "# Routes",
        "",
        "Every route answers with and without its trailing slash, and HEAD wherever it answers GET. "
        "A role of the list is enough. `-` asks for no key.",
        "`/openapi.json` (OpenAPI 3.1) and `/docs` (the same for reading) describe these routes in full and need no key.",
        "Statuses are those of the route itself; 404 for an unknown path, 405 and 500 may always happen: see "
        "[errors](errors.md). Required fields of a body are in bold.",
        "",
    )
    by_tag: dict[str, list[Route]] = {}
    for route in declarations():
        by_tag.setdefault(route.tag, []).append(route)
    for tag, routes in by_tag.items():
        yield from (f"## {tag}", "")
        operations = [(route, document["paths"][route.documented_path][route.method.lower()]) for route in routes]
        rows = [
            (code(route.method), code(route.documented_path), roles(route.permission), str(route.summary), _statuses(o))
            for route, o in operations
        ]
        yield from table(("method", "path", "roles", "what it does", "statuses"), rows)
        yield from _inputs(operations, document)


def roles(permission: Permission) -> str:
    """Return the roles of which a caller needs one, in the order of the contract."""
    return ", ".join(role for role in Role if role in permission.roles) or "-"


def _statuses(operation: Mapping[str, Any]) -> str:
    return ", ".join(sorted(status for status in operation["responses"] if status.isdigit()))


def _inputs(operations: Sequence[tuple[Route, Mapping[str, Any]]], document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the inputs that each route takes in addition to its path."""
    for route, operation in operations:
        query = [parameter["name"] for parameter in operation.get("parameters", []) if parameter.get("in") == "query"]
        body = operation.get("requestBody")
        if query or body:
            yield f"- {code(f'{route.method} {route.documented_path}')}"
        if query:
            yield f"  - query: {', '.join(map(code, query))}"
        if body:
            content = body["content"]
            fields = _fields_of(next(iter(content.values())).get("schema", {}), document)
            field_list = f": {', '.join(fields)}" if fields else ""
            yield f"  - body ({', '.join(map(code, content))}){field_list}"
    yield ""


def _fields_of(schema: Mapping[str, Any], document: Mapping[str, Any]) -> list[str]:
    """Return the names of a body's fields, the required ones in bold; of a list, those of its items."""
    for choice in schema.get("anyOf", ()):
        if "$ref" in choice:
            return _fields_of(choice, document)
    if "items" in schema:
        return _fields_of(schema["items"], document)
    if "$ref" in schema:
        return _fields_of(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document)
    required = schema.get("required", ())
    return [f"**{code(name)}**" if name in required else code(name) for name in schema.get("properties", {})]


# --- events


def _events() -> Iterator[str]:
    yield from (
        "# Domain events",
        "",
        "What the log may hold. A topic never changes once it is stored. A field that an event does not hold was not touched by "
        "it; `null` means that it was cleared. Every event also holds `timestamp` (a date-time: when the command was decided). "
        "Who, why and where in the log stand beside it: see [the log](../explanation/the-log.md).",
        "",
    )
    enumerations: dict[str, type[Enum]] = {}
    for aggregate in AGGREGATES:
        yield from _aggregate(aggregate)
        for event in aggregate.EVENTS:
            yield from _event(event)
            for field in event.model_fields.values():
                enumerations |= {kind.__name__: kind for kind in _enumerations(field.annotation)}
    yield from ("## Enumerations", "", "Stored as the number where there is one, else as the name.", "")
    for name, kind in sorted(enumerations.items()):
        yield from (f"### {name}", "")
        yield from table(("stored", "name"), [(code(member.value), member.name) for member in kind])


def _aggregate(aggregate: type[AggregateRoot]) -> Iterator[str]:
    yield from (f"## {aggregate.KIND}", "", f"Aggregate `{aggregate.__name__}`, stream `{aggregate.KIND}:<key>`.")
    unique = aggregate.UNIQUE if issubclass(aggregate, Record) else ()
    if unique:
        groups = (code(names) if isinstance(names, str) else f"({', '.join(map(code, names))})" for names in unique)
        yield f"Unique (a claim in the same commit): {', '.join(groups)}."
    yield ""


def _event(event: type[DomainEvent]) -> Iterator[str]:
    first = ", begins the stream" if issubclass(event, FirstEvent) else ""
    yield from (f"### {event.TOPIC}", "", f"Version {event.class_version}{first}.", "")
    description = event.__dict__.get("__doc__")
    if description:
        yield from (" ".join(inspect.cleandoc(description).split()), "")
    fields = {name: field for name, field in event.model_fields.items() if name not in ENVELOPE and name != "timestamp"}
    if fields:
        rows = [(code(name), words(field.annotation), "yes" if field.is_required() else "") for name, field in fields.items()]
        yield from table(("field", "type", "always there"), rows)
    else:
        yield from ("No fields.", "")


def words(annotation: Any) -> str:
    """Return a field's type in words."""
    word = _WORDS.get(annotation)
    if word is not None:
        return word
    parts = get_args(annotation)
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join("null" if part is NoneType else words(part) for part in parts)
    if get_origin(annotation) is tuple:
        return f"list of {words(parts[0])}"
    if get_origin(annotation) is dict:
        return f"{words(parts[1])} by {words(parts[0])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "{" + ", ".join(f"{name}: {words(field.annotation)}" for name, field in annotation.model_fields.items()) + "}"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        form = "number" if issubclass(annotation, IntEnum) else "text"
        return f"[{annotation.__name__}](#{annotation.__name__.lower()}) ({form})"
    raise TypeError(f"say in docs/generate.py what {annotation} is called")


def _enumerations(annotation: Any) -> Iterator[type[Enum]]:
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        yield annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for field in annotation.model_fields.values():
            yield from _enumerations(field.annotation)
    for part in get_args(annotation):
        yield from _enumerations(part)


# --- settings


def _settings() -> Iterator[str]:
    yield from (
        "# Settings",
        "",
        "Environment variables, read once at the start. An empty one counts as not set. `medialedger settings` shows the values "
        "in use, with secrets masked, and names every `MEDIALEDGER_…` variable that does not exist.",
        "`HOME` in a default stands for the value of `MEDIALEDGER_HOME`.",
        "",
    )
    rows = [
        (code(variable.name), variable.meaning, code(variable.default) if variable.default else "empty") for variable in VARIABLES
    ]
    yield from table(("name", "meaning", "default"), rows)
    yield from ("", "## Traces", "")
    yield from ("Variables of OpenTelemetry, for the extra `medialedger[otel]`: [traces](../how-to/monitor.md#traces).", "")
    yield from table(("name", "meaning"), [(code(name), meaning) for name, meaning in TRACING.items()])


# --- commands


def _commands() -> Iterator[str]:
    top = parser()
    yield from ("# Commands", "", f"{top.description} `medialedger COMMAND --help` says the same as this page.", "")
    for group in GROUPS:
        yield from (f"**{group.capitalize()}**", "")
        commands = [
            (f"[{code(name)}](#medialedger-{name})", command.summary)
            for name, command in COMMANDS.items()
            if command.group == group
        ]
        yield from table(("command", "what it does"), commands)
    yield from _places()
    for name, subparser in _subcommands(top).items():
        yield from (f"## medialedger {name}", "", COMMANDS[name].description, "")
        yield from _usage(subparser, f"medialedger {name}")
        yield from ("Examples:", "", "```", *(line.strip() for line in COMMANDS[name].examples.splitlines()), "```", "")
    yield from ("## Exit codes", "")
    codes = [line.split(None, 1) for line in EXIT_CODES.splitlines()[1:]]
    yield from table(("code", "meaning"), [(code(number), meaning) for number, meaning in codes])


def _places() -> Iterator[str]:
    """Yield the description of what all commands have in common."""
    leaf = dict(leaves(dict(leaves(parser()))["events"]))["list"]
    options = [(code(_called(action)), _meaning(action)) for action in leaf._actions if action.dest in _PLACES]
    yield from ("## Where a command goes", "")
    by_rest = [code(name) for name, command in COMMANDS.items() if command.by_rest]
    elsewhere = [code(f"{name} {action}".strip()) for name, command in COMMANDS.items() for action in command.remote]
    yield (
        f"{', '.join(by_rest)} call the REST API: that of an address or a [context](#medialedger-context), else that of the "
        f"product of this home. {', '.join(elsewhere)} call it where an address or a context is named, and work on the database of "
        "this home otherwise. All other commands work on the database, or are about this machine: while a context is in use they "
        "want `--local`. [How to](../how-to/use-the-command-line.md)."
    )
    yield ""
    yield from table(("option", "meaning"), options)


def _usage(command: argparse.ArgumentParser, spelled: str) -> Iterator[str]:
    """Yield the command line and the meaning of its arguments, for each action of a command that has actions."""
    actions = _subcommands(command)
    if actions:
        summaries = {choice.dest: choice.help or "" for choice in _choices(command)}
        for name, below in actions.items():
            yield from (f"**`{spelled} {name}`**: {summaries[name]}", "")
            yield from _usage(below, f"{spelled} {name}")
        return
    taken = [action for action in command._actions if action.dest not in ("help", *_PLACES) and action.help != argparse.SUPPRESS]
    if taken:
        yield from ("```", " ".join([spelled, *map(_part, taken)]), "```", "")
        yield from table(("argument", "meaning"), [(code(_called(action)), _meaning(action)) for action in taken])


def _subcommands(command: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return {name: below for action in _nested(command) for name, below in action.choices.items()}


def _choices(command: argparse.ArgumentParser) -> list[argparse.Action]:
    return [choice for action in _nested(command) for choice in action._choices_actions]


def _nested(command: argparse.ArgumentParser) -> list[Any]:
    return [action for action in command._actions if isinstance(action, argparse._SubParsersAction)]


def _called(action: argparse.Action) -> str:
    if action.nargs == 0 or isinstance(action, argparse.BooleanOptionalAction):
        return ", ".join(action.option_strings)
    value = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if not action.option_strings:
        return value
    if action.choices is not None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    return f"{', '.join(action.option_strings)} {value}"


def _part(action: argparse.Action) -> str:
    called = _called(action).rpartition(", ")[2] if action.option_strings else _called(action)
    if action.nargs in ("*", "+"):
        called = f"{called} …"
    needed = action.required if action.option_strings else action.nargs not in ("?", "*")
    return called if needed else f"[{called}]"


def _meaning(action: argparse.Action) -> str:
    return (action.help or "").replace("%(default)s", str(action.default)) or "-"


# --- views


def _views() -> Iterator[str]:
    yield from (
        "# Views",
        "",
        "What queries read. Each is one table with one row for every aggregate of its kinds, written in the transaction that "
        "writes the events: see [views](../explanation/views.md). They are made from the log alone and can be "
        "[rebuilt](../how-to/rebuild-a-view.md). Nothing but this product should write to them.",
        "",
    )
    for view in views().all:
        key = ", ".join(map(code, view.key))
        kinds = ", ".join(map(code, view.kinds))
        yield from (f"## {view.name}", "", f"Version {view.version}, of {kinds}, key {key}.", "")
        yield from table(("column", "type"), [(code(column.name), column.type) for column in view.columns])
        made = [
            (code(f"{view.name}_{name}"), code(tail.format(table="").strip().removeprefix("USING ")))
            for name, tail in view.indexes.items()
        ]
        if made:
            yield from table(("index", "over"), made)
    yield from (
        "## Migrations",
        "",
        "The tables that are not views, applied once and in this order by whichever process starts first:",
        "",
        *(f"- {code(step.name)}" for step in migrations()),
        "",
    )


# --- AsyncAPI


def _asyncapi() -> str:
    """Return `/asyncapi.json` as YAML, with the version of the source, whichever version is installed."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    document = from_json(to_json(asyncapi(version).describe()))  # shares nothing, so YAML needs no anchors
    text = yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=120)
    return f"# {_SAID}\n{text}"


# --- all of them


def _markdown(lines: Iterable[str]) -> str:
    return "\n".join([_MARK, "", *lines]).rstrip() + "\n"


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "routes.md": lambda: _markdown(_routes()),
    "events.md": lambda: _markdown(_events()),
    "settings.md": lambda: _markdown(_settings()),
    "cli.md": lambda: _markdown(_commands()),
    "views.md": lambda: _markdown(_views()),
    "asyncapi.yaml": _asyncapi,
}
"""The function that makes each page, by the file name of the page."""


if __name__ == "__main__":
    sys.exit(main())

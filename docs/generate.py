"""Writes the pages of docs/reference from the code: routes, events, settings, commands, views, and the AsyncAPI document.

`python docs/generate.py` writes them; tests/docs/test_reference.py fails if they are out of date.
"""

from __future__ import annotations

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

import click
import yaml
from pydantic import BaseModel
from pydantic_core import from_json, to_json

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # run as a script, not imported by the test
    sys.path.insert(0, str(ROOT))

from api.cli.command import EXIT_CODES, Command, Group  # noqa: E402
from api.cli.main import COMMANDS, SECTIONS, command_line  # noqa: E402
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
_EITHER: Final = ("audit verify", "audit checkpoint", "audit export", "audit verifier")
"""Actions that call the API of another installation, and work on the database of this home."""
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
        by_tag.setdefault(str(route.tags[0]), []).append(route)
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
    context = click.Context(command_line, info_name="medialedger")
    commands = {name: command_line.get_command(context, name) for name in COMMANDS}
    yield from ("# Commands", "", f"{command_line.help} `medialedger COMMAND --help` says the same as this page.", "")
    for section in SECTIONS:
        yield from (f"**{section.capitalize()}**", "")
        listed = [
            (f"[{code(name)}](#medialedger-{name})", entry.summary) for name, entry in COMMANDS.items() if entry.section == section
        ]
        yield from table(("command", "what it does"), listed)
    yield from _places(commands)
    for name, command in commands.items():
        assert isinstance(command, Command | Group)
        yield from (f"## medialedger {name}", "", _sentence(command.help), "")
        yield from _usage(command, f"medialedger {name}")
        yield from ("Examples:", "", "```", *command.examples.splitlines(), "```", "")
    yield from ("## Exit codes", "")
    codes = [line.split(None, 1) for line in EXIT_CODES.splitlines()[1:]]
    yield from table(("code", "meaning"), [(code(number), meaning) for number, meaning in codes])


def _places(commands: Mapping[str, click.Command | None]) -> Iterator[str]:
    """Yield the description of what all commands have in common."""
    by_api = {name: list(_with_option(command, "url")) for name, command in commands.items()}
    whole = [code(name) for name, actions in by_api.items() if actions and len(actions) == len(list(_leaves(commands[name])))]
    parts = [
        code(f"{name} {action}")
        for name, actions in by_api.items()
        if code(name) not in whole
        for action in actions
        if f"{name} {action}" not in _EITHER
    ]
    places = [option for option in _parameters(_leaf(commands["jobs"])) if option.name in _PLACES]
    yield from ("## Where a command goes", "")
    yield (
        f"{', '.join(whole)} and {', '.join(parts)} call the REST API: that of an address or a [context](#medialedger-context), "
        "else that of the product of this home, or of a product in the process of the command if none runs. "
        f"{', '.join(map(code, _EITHER))} work on the database of this home unless an address or a context is named. All other "
        "commands work on the database, or are about this machine: while a context is in use they want `--local`. "
        "[How to](../how-to/use-the-command-line.md)."
    )
    yield ""
    yield from table(("option", "meaning"), [(code(_called(option)), _meaning(option)) for option in places])


def _leaves(command: click.Command | None) -> Iterator[tuple[str, click.Command]]:
    """Yield the actions of a command by their names; for a command without actions, the command itself under an empty name."""
    assert command is not None
    if isinstance(command, click.Group):
        yield from command.commands.items()
    else:
        yield "", command


def _leaf(command: click.Command | None) -> click.Command:
    return next(leaf for _, leaf in _leaves(command))


def _with_option(command: click.Command | None, name: str) -> Iterator[str]:
    for action, leaf in _leaves(command):
        if any(isinstance(option, click.Option) and option.name == name for option in leaf.params):
            yield action


def _parameters(command: click.Command) -> list[click.Parameter]:
    """Return the arguments of a command, then its options."""
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    return sorted(shown, key=lambda parameter: isinstance(parameter, click.Option))


def _usage(command: click.Command, spelled: str) -> Iterator[str]:
    """Yield the command line and the meaning of its arguments, for each action of a command that has actions."""
    if isinstance(command, click.Group):
        for name, action in command.commands.items():
            yield from (f"**`{spelled} {name}`**: {_sentence(action.help)}", "")
            yield from _usage(action, f"{spelled} {name}")
        return
    taken = [parameter for parameter in _parameters(command) if parameter.name not in _PLACES]
    if taken:
        yield from ("```", " ".join([spelled, *map(_part, taken)]), "```", "")
        yield from table(("argument", "meaning"), [(code(_called(parameter)), _meaning(parameter)) for parameter in taken])


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split())


def _called(parameter: click.Parameter) -> str:
    if not isinstance(parameter, click.Option):
        return str(parameter.metavar).strip("[].")
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    if parameter.is_flag or parameter.flag_value is True:
        return names
    kind = parameter.type
    value = parameter.metavar or ("{" + ",".join(kind.choices) + "}" if isinstance(kind, click.Choice) else "VALUE")
    return f"{names} {value}"


def _part(parameter: click.Parameter) -> str:
    called = _called(parameter)
    if isinstance(parameter, click.Option):
        called = called.rpartition(", ")[2]
    elif parameter.nargs == -1:
        called = f"{called} …"
    return called if parameter.required else f"[{called}]"


def _meaning(parameter: click.Parameter) -> str:
    return _sentence(getattr(parameter, "help", None)) or "-"


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

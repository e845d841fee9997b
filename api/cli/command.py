"""The parts that commands are declared with: classes of click with examples and exit codes in their help, types of arguments,
shared options, and decorators that give a command the REST API or the database. A module of a command imports only light modules at
its top, so help and completion are quick; what works on the database is imported when the command runs. See ADR 0113."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from inspect import cleandoc
from pathlib import Path
from re import DOTALL, fullmatch
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

import click

from api.wiring.startup import StartError

if TYPE_CHECKING:  # help and completion do not need them
    from api.cli.remote.http_api import HttpApi
    from api.cli.remote.rest_api import RestApi

EXIT_CODES: Final = """\
exit codes:
  0    done, or stopped after a signal
  1    failed or refused; one line on stderr gives the reason
  2    the command line is wrong
  3    the log or a view is wrong (audit, restore); the schema is not up to date (migrate --status)
  4    something needs attention (status, doctor)
  130  interrupted (Ctrl-C) before the product had started
"""
NOT_WHOLE: Final = 3
NOT_UP_TO_DATE: Final = 3
NEEDS_ATTENTION: Final = 4
COMPLETE: Final = "_MEDIALEDGER_COMPLETE"
"""The variable with which the script of `medialedger completion` asks for the words that may follow."""
FORMS: Final = ("table", "wide", "json", "ndjson")
"""The formats of api/cli/output.py, which commands import only when they print."""

_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 9000
_HELP: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


# --- classes of commands


class Action(click.Command):
    """An action of a command, such as `medialedger jobs list`."""


class _Explained(click.Command):
    """A command whose help ends with examples and the exit codes."""

    examples: str = ""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = "".join(f"  {line}\n" for line in self.examples.splitlines())
        formatter.write(f"\nexamples:\n{lines}\n{EXIT_CODES}")


class Command(_Explained):
    """A command without actions."""


class Group(_Explained, click.Group):
    """A command with actions."""

    command_class = Action


def command(name: str, *, examples: str, **more: Any) -> Callable[[Function], Command]:
    """Declare a command without actions. The docstring of the function is its help."""
    return _declared(Command, name, examples, **more)


def group(name: str, *, examples: str) -> Callable[[Function], Group]:
    """Declare a command with actions. The docstring of the function is its help."""
    return _declared(Group, name, examples)


def _declared(kind: type[Any], name: str, examples: str, **more: Any) -> Callable[[Function], Any]:
    def declare(function: Function) -> Any:
        made = click.command(name, cls=kind, context_settings=_HELP, **more)(function)
        made.examples = cleandoc(examples)
        return made

    return declare


# --- types of arguments


class Parsed(click.ParamType[Any]):
    """A type of arguments whose values are parsed by a function. It raises `ValueError` with a sentence for an invalid text."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value  # a default
        try:
            value.encode()
        except UnicodeEncodeError:
            self.fail("it is not valid UTF-8", param, ctx)
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _title(text: str) -> str:
    from api.kernel.wire import LONGEST_LABEL  # imports pydantic: most commands do not need that

    if not text.strip():
        raise ValueError("it has no visible character")
    if len(text) > LONGEST_LABEL:
        raise ValueError(f"it has more than {LONGEST_LABEL} characters")
    return text


def _parameter(text: str) -> tuple[str, Any]:
    """Return the name and the value of an argument `name=text` or `name:=JSON`."""
    from json import loads

    match = fullmatch(r"([^:=]+)(:?=)(.*)", text, flags=DOTALL)
    if match is None:
        raise ValueError(f"{text!r} is neither NAME=text nor NAME:=JSON")
    name, sign, value = match.groups()
    if sign == "=":
        return name, value
    try:
        return name, loads(value)
    except ValueError:
        raise ValueError(f"{name}: the text after := is not JSON") from None


def parsed_moment(text: str) -> datetime:
    """Return the time of an ISO 8601 text. A time without an offset is UTC."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a date and time such as 2026-11-25T12:00:00Z") from None
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)


def _moment_or_version(text: str) -> str:
    """Return a version (`v3` or `3`) or a time in the spelling of the audit's query parameters."""
    if match := fullmatch(r"v?([1-9][0-9]{0,17})", text):
        return match[1]
    return parsed_moment(text).isoformat()


def _schedule_time(text: str) -> datetime:
    """Return a time that is far enough from the limits of the calendar for a schedule around it."""
    parsed = parsed_moment(text)
    if not _FIRST_YEAR <= parsed.year <= _LAST_YEAR:
        raise ValueError(f"the year must be {_FIRST_YEAR} to {_LAST_YEAR}")
    return parsed


def _guid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an id such as 3fa85f64-5717-4562-b3fc-2c963f66afa6") from None


TEXT: Final = Parsed("text", str)
TITLE: Final = Parsed("title", _title)
PARAMETER: Final = Parsed("parameter", _parameter)
MOMENT: Final = Parsed("time", parsed_moment)
MOMENT_OR_VERSION: Final = Parsed("time or version", _moment_or_version)
SCHEDULE_TIME: Final = Parsed("time", _schedule_time)
ID: Final = Parsed("id", _guid)
POSITIVE: Final = click.IntRange(min=1)
POSITION: Final = click.IntRange(min=0)
PATH: Final = click.Path(path_type=Path)


# --- options that many commands share


def form_option(function: F) -> F:
    """Add the options for the output format, as the parameter `form`."""
    json = click.option("--json", "form", flag_value="json", help="The same as -o json.")
    form = click.option(
        *("-o", "--format", "form"),
        type=click.Choice(FORMS),
        default="table",
        metavar="FORM",
        help=f"The output format: {', '.join(FORMS)} (default: table). wide has all columns and absolute times, ndjson has one "
        "document per line.",
    )
    return form(json(function))


def consent_option(function: F) -> F:
    return click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")(function)


def items_option(default: int, *, name: str = "--items", what: str = "rows") -> Callable[[F], F]:
    """Add the option for the maximum number of rows of a list."""
    return click.option(
        name, type=POSITIVE, default=default, metavar="N", help=f"The maximum number of {what} (default: {default})."
    )


def place_options(function: F) -> F:
    """Add the options for settings that may also be given on the command line. Their values are validated together with the
    settings."""
    options = (
        click.option("--home", type=TEXT, metavar="DIR", help="Data directory; overrides MEDIALEDGER_HOME."),
        click.option("--host", type=TEXT, metavar="ADDRESS", help="Address that the API listens on; overrides MEDIALEDGER_HOST."),
        click.option(
            *("--port",),
            type=TEXT,
            metavar="N",
            help="Port that the API listens on, 0 for any free one; overrides MEDIALEDGER_PORT.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


# --- the destination of a command


@dataclass(frozen=True, slots=True)
class Installation:
    """The options that choose the installation of a command. They are None or False unless given."""

    url: str | None = None
    context: str | None = None
    local: bool = False
    key_file: str | None = None

    def remote(self) -> HttpApi | None:
        """Return the API that these options, the environment or the contexts choose; None for this home."""
        if sum((self.url is not None, self.context is not None, self.local)) > 1:
            raise click.UsageError("only one of --url, --context and --local may be given")
        from api.cli.remote.contexts import remote_api

        return remote_api(url=self.url, context=self.context, local=self.local, key_file=self.key_file)

    def api(self, *, make: bool = False) -> RestApi:
        """Return the chosen API; for this home, that of the running product, or one in this process. With `make`, a missing or
        empty database of this home is created."""
        from api.cli.remote.contexts import local_api

        return self.remote() or local_api(make=make)


def installation_options(function: Function) -> Function:
    """Add `--url` and the related options, as the parameter `installation`."""

    @click.option("--url", type=TEXT, metavar="URL", help="Use the API at this address (MEDIALEDGER_URL).")
    @click.option("--context", type=TEXT, metavar="NAME", help="Use this context (MEDIALEDGER_CONTEXT).")
    @click.option("--local", is_flag=True, help="Use the product of this home, even if there is a default context.")
    @click.option("--key-file", type=TEXT, metavar="FILE", help="File with the API key (-: standard input; MEDIALEDGER_API_KEY).")
    @wraps(function)
    def call(*, url: str | None, context: str | None, local: bool, key_file: str | None, **arguments: Any) -> Any:
        return function(installation=Installation(url, context, local, key_file), **arguments)

    return call


def calls_api(function: Function) -> Function:
    """Give the command the REST API of the chosen installation as its parameter `api`, and add the options that choose it."""

    @installation_options
    @wraps(function)
    def call(installation: Installation, **arguments: Any) -> Any:
        api = installation.api()
        try:
            return function(api=api, **arguments)
        finally:
            api.close()

    return call


Work = Callable[..., Awaitable[int | None]]


def on_database(work: Work) -> Function:
    """Run the coroutine of the command with the settings as its parameter `settings`. The command works on the database of this
    home, so it refuses while commands go to another installation."""

    @click.option("--local", is_flag=True, help="Use the database of this home, even if there is a default context.")
    @wraps(work)
    def call(local: bool, **arguments: Any) -> int:
        refuse_remote(Installation(local=local).remote())
        return run_here(work, **arguments)

    return call


def on_machine(work: Work) -> Function:
    """Run the coroutine of the command with the settings as its parameter `settings`. It ignores contexts."""

    @wraps(work)
    def call(**arguments: Any) -> int:
        return run_here(work, **arguments)

    return call


def serves(work: Work) -> Function:
    """Run the coroutine of a command that runs until it is stopped: it logs, and warns about unknown settings."""

    @wraps(work)
    def call(**arguments: Any) -> int:
        from api.cli.run.runner import run

        return run(work, arguments, serves=True)

    return call


def refuse_remote(api: HttpApi | None) -> None:
    if api is not None:
        path = click.get_current_context().command_path
        raise StartError(f"`{path}` works on the database and cannot use {api.label}: run it on that machine, or give --local")


def run_here(work: Work, **arguments: Any) -> int:
    """Run a coroutine on this machine and return its exit code."""
    from api.cli.run.runner import run

    return run(work, arguments)

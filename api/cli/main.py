"""The console script `medialedger`: determines what a command needs and where it goes, and runs it. A command that only calls the
API imports neither the settings nor the product, so it starts as quickly as Python. See ADR 0076."""

from __future__ import annotations

import importlib
import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter, _SubParsersAction
from collections.abc import Iterator, Mapping, Sequence
from errno import EDQUOT, ENOSPC
from textwrap import fill
from typing import Any

from api.cli import (
    arguments,
    audit_arguments,
    catalogue_arguments,
    job_arguments,
    live_arguments,
    publishing_arguments,
    shell_arguments,
    up_arguments,
)
from api.cli.arguments import EXIT_CODES, GROUPS, Command
from api.cli.command_parser import CommandParser, ShowVersion
from api.cli.output_arguments import add_local, add_target
from api.cli.printable import printable_lines
from api.cli.run.limits import collect_seldom
from api.wiring.startup import StartError

# A command is a line here, and its arguments are in one of the modules above. The module of its name implements it, and is
# imported only when it is called: `run(args, api) -> int` in api/cli/by_rest/ for actions that call the REST API, and
# `async def run(args, settings) -> int` in api/cli/ for actions on the database (`load-sample`: api/cli/load_sample.py).
COMMANDS: Mapping[str, Command] = {
    "up": up_arguments.UP,
    "demo": up_arguments.DEMO,
    "api": arguments.API,
    "workers": arguments.WORKERS,
    "origin": live_arguments.ORIGIN,
    "settings": arguments.SETTINGS,
    "migrate": arguments.MIGRATE,
    "load-sample": arguments.LOAD_SAMPLE,
    "status": arguments.STATUS,
    "doctor": shell_arguments.DOCTOR,
    "events": catalogue_arguments.EVENTS,
    "webhooks": catalogue_arguments.WEBHOOKS,
    "sessions": live_arguments.SESSIONS,
    "channel": live_arguments.CHANNEL,
    "provision": live_arguments.PROVISION,
    "consumers": arguments.CONSUMERS,
    "projections": arguments.PROJECTIONS,
    "builds": arguments.BUILDS,
    "client": arguments.CLIENT,
    "keys": arguments.KEYS,
    "jobs": job_arguments.JOBS,
    "workflows": job_arguments.WORKFLOWS,
    "media": arguments.MEDIA,
    "compose": publishing_arguments.COMPOSE,
    "destination": publishing_arguments.DESTINATION,
    "publish": publishing_arguments.PUBLISH,
    "audit": audit_arguments.AUDIT,
    "log": audit_arguments.LOG,
    "backup": arguments.BACKUP,
    "restore": arguments.RESTORE,
    "restored": arguments.RESTORED,
    "quiet": arguments.QUIET,
    "context": shell_arguments.CONTEXT,
    "open": shell_arguments.OPEN,
    "completion": shell_arguments.COMPLETION,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    os.umask(0o077)
    from workers.kernel.confinement import conceal

    conceal()
    collect_seldom()  # before most imports
    words = sys.argv[1:] if argv is None else argv
    if not words:
        parser().print_help()
        return 0
    try:
        args = parser().parse_args(words)
        code = _run(args, COMMANDS[args.command])
        sys.stdout.flush()
        return code
    except StartError as error:
        print(f"medialedger: {printable_lines(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _drop_output()  # `medialedger settings | head`
        return 0
    except OSError as error:
        if error.errno not in (ENOSPC, EDQUOT) or error.filename is not None:
            raise
        _drop_output()
        print(f"medialedger: the output could not be written: {error.strerror}", file=sys.stderr)
        return 1


def _drop_output() -> None:
    """Redirect standard output to the null device, so that flushing its buffer no longer fails."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(args: Namespace, command: Command) -> int:
    action = getattr(args, "action", None) or ""
    if command.light:
        module: Any = importlib.import_module(f"api.cli.{args.command}")
        code: int = module.run(args)
        return code
    if not command.about_machine:
        from api.cli.remote.contexts import local_api, remote_api

        remote = remote_api(args)
        if action in command.by_rest or (remote is not None and action in command.remote):
            return _run_by_rest(args, remote or local_api())
        if remote is not None:
            spelled = f"medialedger {args.command} {action}".rstrip()
            raise StartError(
                f"`{spelled}` works on the database and cannot use {remote.label}: run it on that machine, or give --local"
            )
    from api.cli.run.running import run_here

    return run_here(args, command)


def _run_by_rest(args: Namespace, api: Any) -> int:
    module: Any = importlib.import_module(f"api.cli.by_rest.{args.command}")
    try:
        code: int = module.run(args, api)
        return code
    finally:
        api.close()


def parser(commands: Mapping[str, Command] | None = None) -> ArgumentParser:
    """Return the parser of all commands, or of the given ones."""
    selected = COMMANDS if commands is None else commands
    top = CommandParser(
        prog="medialedger",
        usage="medialedger COMMAND [ACTION] [options]",
        description="An event-sourced back end for live and on-demand video.",
        epilog=f"{_groups(selected)}\nsettings are environment variables: medialedger settings\n\n{EXIT_CODES}",
        formatter_class=RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action=ShowVersion)
    choices = top.add_subparsers(
        dest="command", metavar="COMMAND", required=True, prog="medialedger", help="one of the commands below"
    )
    for name, command in selected.items():
        command_parser = choices.add_parser(
            name,
            description=fill(command.description, width=100),
            epilog=f"examples:\n  {command.examples}\n\n{EXIT_CODES}",
            formatter_class=RawDescriptionHelpFormatter,
        )
        command.arguments(command_parser)
        if not (command.about_machine or command.serves):
            _add_places(command_parser, command)
    return top


def _add_places(parser: ArgumentParser, command: Command) -> None:
    """Add the options for the destination to every action."""
    for action, leaf in leaves(parser):
        (add_target if action in command.by_rest + command.remote else add_local)(leaf)


def leaves(parser: ArgumentParser) -> Iterator[tuple[str, ArgumentParser]]:
    """Yield the parsers of a command's actions by their names; for a command without actions, the parser itself under an empty
    name."""
    nested = [action for action in parser._actions if isinstance(action, _SubParsersAction)]
    if not nested:
        yield "", parser
    for action in nested:
        yield from action.choices.items()


def _groups(commands: Mapping[str, Command]) -> str:
    lines: list[str] = []
    for group in GROUPS:
        members = {name: command for name, command in commands.items() if command.group == group}
        if members:
            lines += [f"{group}:", *(f"  {name:<12} {command.summary}" for name, command in members.items()), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

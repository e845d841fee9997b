"""The console script `medialedger`: runs a command with the settings, and prints an expected error as one line."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import uvloop

from api.cli import arguments, audit_arguments, live_arguments, publishing_arguments, up_arguments
from api.cli.arguments import EXIT_CODES, PLACE, Command
from api.cli.command_parser import CommandParser
from api.cli.garbage import collect_seldom
from api.cli.printable import printable_lines
from api.kernel.log import JsonFormatter
from api.kernel.version import product_version
from api.wiring.settings import Settings
from api.wiring.settings_checks import SettingsError
from api.wiring.startup import StartError
from domain.kernel.errors import Unavailable
from workers.adapters.embedded_postgres import EmbeddedPostgresError
from workers.adapters.keyfiles import KeyFileError
from workers.adapters.system_account import AccountError

EXPECTED_ERRORS = (StartError, Unavailable, SettingsError, KeyFileError, AccountError, EmbeddedPostgresError)

# A command is a line here, its arguments in api/cli/arguments.py or in the modules beside it, and
# `async def run(args, settings) -> int` in the module of its name (`load-sample`: api/cli/load_sample.py), which is imported only
# when it is called.
COMMANDS: Mapping[str, Command] = {
    "up": up_arguments.UP,
    "demo": up_arguments.DEMO,
    "api": arguments.API,
    "workers": arguments.WORKERS,
    "status": arguments.STATUS,
    "settings": arguments.SETTINGS,
    "migrate": arguments.MIGRATE,
    "builds": arguments.BUILDS,
    "client": arguments.CLIENT,
    "keys": arguments.KEYS,
    "audit": audit_arguments.AUDIT,
    "log": audit_arguments.LOG,
    "projections": arguments.PROJECTIONS,
    "consumers": arguments.CONSUMERS,
    "backup": arguments.BACKUP,
    "restore": arguments.RESTORE,
    "restored": arguments.RESTORED,
    "jobs": arguments.JOBS,
    "media": arguments.MEDIA,
    "destination": publishing_arguments.DESTINATION,
    "publish": publishing_arguments.PUBLISH,
    "compose": publishing_arguments.COMPOSE,
    "origin": live_arguments.ORIGIN,
    "channel": live_arguments.CHANNEL,
    "sessions": live_arguments.SESSIONS,
    "provision": live_arguments.PROVISION,
    "load-sample": arguments.LOAD_SAMPLE,
}


def main(argv: Sequence[str] | None = None) -> int:
    os.umask(0o077)
    collect_seldom()  # before most imports
    words = sys.argv[1:] if argv is None else argv
    if not words:
        parser().print_help()
        return 0
    args = parser().parse_args(words)
    try:
        settings = Settings.from_process({name: text for name in PLACE if (text := getattr(args, name, None)) is not None})
        if COMMANDS[args.command].serves:
            set_up_log(settings.log_level)
        if COMMANDS[args.command].serves or args.command == "settings":
            _warn_of_unknown(settings)
        module: Any = importlib.import_module(f"api.cli.{args.command.replace('-', '_')}")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            code: int = runner.run(module.run(args, settings))
    except EXPECTED_ERRORS as error:
        print(f"medialedger: {printable_lines(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # `medialedger settings | head`
        return 0
    return code


def parser(commands: Mapping[str, Command] | None = None) -> ArgumentParser:
    top = CommandParser(
        prog="medialedger",
        description="An event-sourced back end for live and on-demand video.",
        epilog=f"settings are environment variables: medialedger settings\n\n{EXIT_CODES}",
        formatter_class=RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"medialedger {product_version()}")
    choices = top.add_subparsers(dest="command", metavar="COMMAND", required=True, title="commands")
    for name, command in (commands or COMMANDS).items():
        one = choices.add_parser(
            name,
            help=command.summary,
            description=fill(command.description, width=100),
            epilog=f"examples:\n  {command.examples}\n\n{EXIT_CODES}",
            formatter_class=RawDescriptionHelpFormatter,
        )
        command.arguments(one)
    return top


def _warn_of_unknown(settings: Settings) -> None:
    for name in settings.unknown:
        print(f"medialedger: warning: there is no setting {name}", file=sys.stderr)


def set_up_log(level: str) -> None:
    """Log to stderr, one JSON object a line. The messages of uvicorn about its start and end repeat ours."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler])
    if level != "DEBUG":
        logging.getLogger("kafka").setLevel(logging.CRITICAL)  # it logs every attempt; the product logs the failure once
        logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # so does the breaker of the database
    server = logging.getLogger("uvicorn.error")
    server.addFilter(_is_not_a_cancelled_request)
    if level == "INFO":
        server.setLevel(logging.WARNING)


def _is_not_a_cancelled_request(record: logging.LogRecord) -> bool:
    """False for the traceback of a request that was cancelled at the end of the shutdown time: it is no error."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


if __name__ == "__main__":
    sys.exit(main())

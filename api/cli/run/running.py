"""Runs a command that needs the settings. Sets up the log if the command serves, and prints an expected error as one line."""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys
from argparse import Namespace
from typing import Any, Final

import psycopg
import uvloop

from api.cli.arguments import PLACE, Command
from api.cli.printable import printable_lines
from api.kernel.log import JsonFormatter, TextFormatter, as_text
from api.wiring.settings import Settings
from api.wiring.settings_checks import SettingsError
from api.wiring.startup import LOST_KEY, StartError
from domain.kernel.errors import DecryptionFailed, Unavailable
from workers.adapters.embedded_postgres import EmbeddedPostgresError
from workers.adapters.keyfiles import KeyFileError
from workers.adapters.system_account import AccountError

_RUN: Final = ("up", "api", "workers", "origin", "migrate")
EXPECTED_ERRORS = (StartError, Unavailable, SettingsError, KeyFileError, AccountError, EmbeddedPostgresError)


def run_here(args: Namespace, command: Command) -> int:
    """Run a command and return its exit code. Raise `KeyboardInterrupt` on Ctrl-C."""
    try:
        settings = Settings.from_process({name: text for name in PLACE if (text := getattr(args, name, None)) is not None})
        if command.serves:
            set_up_log(settings)
        if command.serves or args.command == "settings":
            _warn_of_unknown(settings)
        package = "api.cli.run" if args.command in _RUN else "api.cli"
        module: Any = importlib.import_module(f"{package}.{args.command.replace('-', '_')}")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            code: int = runner.run(module.run(args, settings))
    except EXPECTED_ERRORS as error:
        print(f"medialedger: {printable_lines(str(error))}", file=sys.stderr)
        return 1
    except DecryptionFailed as error:
        what = f"{printable_lines(str(error))} cannot be decrypted with any master key of this machine"
        print(f"medialedger: {what}; {LOST_KEY}", file=sys.stderr)
        return 1
    except psycopg.Error as error:
        from api.cli.run.database import first_line

        print(f"medialedger: the database refused: {printable_lines(first_line(error))}", file=sys.stderr)
        return 1
    return code


def _warn_of_unknown(settings: Settings) -> None:
    for name in settings.unknown:
        print(f"medialedger: warning: the setting {name} does not exist", file=sys.stderr)


def set_up_log(settings: Settings) -> None:
    """Log to stderr, as one JSON object per line or as text for people. uvicorn's messages about its start and end repeat ours, and
    any client can cause its warnings about other protocols, so both are dropped."""
    handler = logging.StreamHandler()
    handler.setFormatter(TextFormatter() if as_text(settings.log_format, sys.stderr) else JsonFormatter())
    level = settings.log_level
    logging.basicConfig(level=level, handlers=[handler])
    if level != "DEBUG":
        logging.getLogger("kafka").setLevel(logging.CRITICAL)  # it logs every attempt; the product logs the failure once
        logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # so does the breaker of the database
    server = logging.getLogger("uvicorn.error")
    server.addFilter(_is_not_a_cancelled_request)
    if level in ("INFO", "WARNING"):
        server.setLevel(logging.ERROR)


def _is_not_a_cancelled_request(record: logging.LogRecord) -> bool:
    """Return False for the traceback of a request that was cancelled at the end of the shutdown time: it is no error."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))

"""Runs a command that needs the settings. Sets up the log if the command serves, and prints an expected error as one line."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final

import psycopg
import uvloop

from api.cli.terminal_text import printable_lines
from api.wiring.settings import Settings
from api.wiring.settings_checks import SettingsError
from api.wiring.startup import LOST_KEY, StartError
from domain.kernel.errors import DecryptionFailed, Unavailable
from workers.adapters.embedded_postgres import EmbeddedPostgresError
from workers.adapters.keyfiles import KeyFileError
from workers.adapters.system_account import AccountError

EXPECTED_ERRORS = (StartError, Unavailable, SettingsError, KeyFileError, AccountError, EmbeddedPostgresError)
_PLACE: Final = ("home", "host", "port")
"""The options of `place_options`; they are named like the fields of the settings."""


def run(work: Callable[..., Awaitable[int | None]], arguments: dict[str, Any], *, serves: bool = False) -> int:
    """Run the coroutine of a command with the settings and its arguments, and return its exit code. Raise `KeyboardInterrupt` on
    Ctrl-C."""
    try:
        settings = Settings.from_process({name: text for name in _PLACE if (text := arguments.pop(name, None)) is not None})
        if serves:
            set_up_log(settings)
            warn_of_unknown(settings)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_awaited(work, settings, arguments)) or 0
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


async def _awaited(work: Callable[..., Awaitable[int | None]], settings: Settings, arguments: dict[str, Any]) -> int | None:
    return await work(settings=settings, **arguments)


def settings_of_process() -> Settings:
    """Return the settings of the environment. Raise `StartError` if they are wrong."""
    try:
        return Settings.from_process()
    except SettingsError as error:
        raise StartError(str(error)) from None


def warn_of_unknown(settings: Settings) -> None:
    for name in settings.unknown:
        print(f"medialedger: warning: the setting {name} does not exist", file=sys.stderr)


def set_up_log(settings: Settings) -> None:
    """Log to stderr, as one JSON object per line or as text for people. uvicorn's messages about its start and end repeat ours, and
    any client can cause its warnings about other protocols, so both are dropped."""
    from api.kernel.log import JsonFormatter, TextFormatter, as_text  # imports FastAPI, which short commands do not need

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

"""Where a command goes: to a named address, to a context, or to the product of this home. ADR 0076."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from api.cli import shell
from api.cli.contexts import contexts_file, read_contexts
from api.cli.environment import CONTEXT, KEY, URL, environment, given, home
from api.cli.http_api import HttpApi
from api.cli.rest_api import RestApi
from api.kernel.shell_access import database_hash, running_product
from api.wiring.startup import StartError

_LONGEST_KEY = 4096


def remote_api(args: Namespace) -> HttpApi | None:
    """The first that is said: `--url`, `--context` or `--local`, MEDIALEDGER_URL, MEDIALEDGER_CONTEXT, the context in use.

    None: here."""
    key = key_of(getattr(args, "key_file", None))
    if (url := getattr(args, "url", None)) is not None:
        return HttpApi(url, key)
    if (name := getattr(args, "context", None)) is not None:
        return _of_context(name, key)
    if getattr(args, "local", False):
        return None
    if (url := given(URL)) is not None:
        return HttpApi(url, key)
    if (name := given(CONTEXT)) is not None:
        return _of_context(name, key)
    used = read_contexts(contexts_file(environment())).used
    return None if used is None else _of_context(used, key)


def running_api() -> HttpApi | None:
    """The product that runs on this home, called by the user of the shell; None where none does."""
    found = running_product(home())
    if found is None or ((url := given("MEDIALEDGER_DATABASE_URL")) is not None and found.database != database_hash(url)):
        return None
    return HttpApi(found.url, found.key(shell.user_of_shell()), label=f"the product of {home()}", local=True)


def local_api() -> RestApi:
    """The product that runs on this home, else the API in this process, on the database."""
    if (found := running_api()) is not None:
        return found
    from api.cli.in_process_api import InProcessApi

    return InProcessApi()


def _of_context(name: str, key: str | None) -> HttpApi:
    context = read_contexts(contexts_file(environment())).named(name)
    return HttpApi(context.url, key or context.key, label=f"{name} ({context.url})")


def key_of(file: str | None) -> str | None:
    """The API key in this file, or in the environment: arguments can be read by everybody."""
    if file is None:
        return given(KEY)
    try:
        text = sys.stdin.readline(_LONGEST_KEY) if file == "-" else Path(file).read_text()[:_LONGEST_KEY]
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(f"the key cannot be read from {file}: {getattr(error, 'strerror', None) or 'it is not text'}") from None
    return text.strip() or None

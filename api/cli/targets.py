"""The destination of a command: a given address, a context, or the product of this home. See ADR 0076."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from api.cli import shell
from api.cli.contexts import contexts_file, read_contexts
from api.cli.environment import CONTEXT, KEY, URL, environment, home, variable
from api.cli.http_api import HttpApi
from api.cli.rest_api import RestApi
from api.kernel.shell_access import database_hash, running_product
from api.wiring.startup import StartError

_LONGEST_KEY = 4096


def remote_api(args: Namespace) -> HttpApi | None:
    """Return the API that a command goes to; None for this home. The first of these decides: `--url`, `--context` or `--local`,
    MEDIALEDGER_URL, MEDIALEDGER_CONTEXT, the default context."""
    key = key_of(getattr(args, "key_file", None))
    if (url := getattr(args, "url", None)) is not None:
        return HttpApi(url, key)
    if (name := getattr(args, "context", None)) is not None:
        return _of_context(name, key)
    if getattr(args, "local", False):
        return None
    if (url := variable(URL)) is not None:
        return HttpApi(url, key)
    if (name := variable(CONTEXT)) is not None:
        return _of_context(name, key)
    used = read_contexts(contexts_file(environment())).used
    return None if used is None else _of_context(used, key)


def running_api() -> HttpApi | None:
    """Return the product that runs on this home, called by the user of the shell; None if none runs."""
    product = running_product(home())
    if product is None or ((url := variable("MEDIALEDGER_DATABASE_URL")) is not None and product.database != database_hash(url)):
        return None
    return HttpApi(product.url, product.key(shell.user_of_shell()), label=f"the product of {home()}", local=True)


def local_api() -> RestApi:
    """Return the product that runs on this home, else the API in this process, on the database."""
    if (running := running_api()) is not None:
        return running
    from api.cli.in_process_api import InProcessApi

    return InProcessApi()


def _of_context(name: str, key: str | None) -> HttpApi:
    context = read_contexts(contexts_file(environment())).get(name)
    return HttpApi(context.url, key or context.key, label=f"{name} ({context.url})")


def key_of(file: str | None) -> str | None:
    """Return the API key in this file, or in the environment. It is no argument, because other users can read arguments."""
    if file is None:
        return variable(KEY)
    try:
        text = sys.stdin.readline(_LONGEST_KEY) if file == "-" else Path(file).read_text()[:_LONGEST_KEY]
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(f"the key cannot be read from {file}: {getattr(error, 'strerror', None) or 'it is not text'}") from None
    return text.strip() or None

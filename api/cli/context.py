"""`medialedger context`: manages the named installations that commands can go to."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from api.cli.output import Column, Kind, field, print_list
from api.cli.remote.contexts import Context, contexts_file, key_of, read_contexts, write_contexts
from api.cli.remote.http_api import HttpApi, checked_url
from api.cli.shell import confirm, environment
from api.wiring.startup import StartError

_LONGEST_NAME: Final = 64


def run(args: Namespace) -> int:
    _ACTIONS[args.action](args)
    return 0


def _add(args: Namespace) -> None:
    """Store a context. Its address and key are tried first, so that a mistyped one is reported now."""
    if not args.name or len(args.name) > _LONGEST_NAME or not args.name.isprintable() or args.name.startswith("-"):
        raise StartError(f"the name must have 1 to {_LONGEST_NAME} printable characters and must not begin with -")
    url = checked_url(args.url)
    key = None if args.no_key else key_of(args.key_file) or _ask_key()
    if not args.no_try:
        _try(url, key)
    if key is not None and url.startswith("http:") and not _is_loopback(url):
        print("medialedger: warning: http sends the key unencrypted; use https", file=sys.stderr)
    path = contexts_file(environment())
    contexts = read_contexts(path).with_context(args.name, Context(url, key))
    write_contexts(path, contexts)
    print(f"{args.name} is {url}" + (", the default" if contexts.used == args.name else ""))


def _ask_key() -> str:
    if not sys.stdin.isatty():
        raise StartError("there is no API key: give --key-file, or --no-key if none is needed")
    from getpass import getpass

    return getpass("API key: ").strip()


def _try(url: str, key: str | None) -> None:
    api = HttpApi(url, key)
    try:
        api.document("/readyz" if key is None else "/api/health/version")
    finally:
        api.close()


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _use(args: Namespace) -> None:
    path = contexts_file(environment())
    write_contexts(path, read_contexts(path).with_default(args.name))
    print("commands go to the product of this home" if args.name is None else f"commands go to {args.name}")


def _list(args: Namespace) -> None:
    contexts = read_contexts(contexts_file(environment()))
    documents = [
        {"name": name, "url": context.url, "hasKey": context.key is not None, "inUse": name == contexts.used}
        for name, context in contexts.all.items()
    ]
    columns = (
        Column("name", field("name")),
        Column("url", field("url"), Kind.LONG),
        Column("key", field("hasKey")),
        Column("default", field("inUse"), Kind.STATE),
    )
    print_list(documents, columns, form=args.form, none="no contexts")


def _remove(args: Namespace) -> None:
    path = contexts_file(environment())
    contexts = read_contexts(path)
    contexts.get(args.name)
    confirm(args, f"forget the context {args.name} with its key")
    write_contexts(path, contexts.without(args.name))
    print(f"{args.name} is forgotten")


_ACTIONS: Final[Mapping[str, Callable[[Namespace], None]]] = {"add": _add, "use": _use, "list": _list, "remove": _remove}

"""`medialedger context`: manages the named installations that commands can go to."""

from __future__ import annotations

import sys
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import click

from api.cli.command import TEXT, consent_option, form_option, group
from api.cli.output import Kind, TableColumn, field, print_list
from api.cli.remote.contexts import Context, contexts_file, key_of, read_contexts, write_contexts
from api.cli.remote.http_api import HttpApi, checked_url
from api.cli.shell import confirm, environment
from api.wiring.startup import StartError

_LONGEST_NAME: Final = 64


@group(
    "context",
    examples="""
    medialedger context add studio https://media.example --key-file studio.key
    medialedger context use studio
    medialedger context list
    medialedger context use
    medialedger context remove studio
    """,
)
def context() -> None:
    """Store addresses and API keys of installations under names, in a file that only you can read: contexts.json below
    XDG_CONFIG_HOME/medialedger, or ~/.config/medialedger. Commands go to the default context, unless --url, --context or --local
    says otherwise."""


@context.command("add")
@click.argument("name", type=TEXT, metavar="NAME", help="1 to 64 printable characters.")
@click.argument("url", type=TEXT, metavar="URL", help="Such as https://media.example.")
@click.option(
    "--key-file", type=TEXT, metavar="FILE", help="The API key (-: standard input; default: MEDIALEDGER_API_KEY, else a prompt)."
)
@click.option("--no-key", is_flag=True, help="Store no key, for an address that needs none.")
@click.option("--no-try", is_flag=True, help="Store the context without trying it.")
def add_context(name: str, *, url: str, key_file: str | None, no_key: bool, no_try: bool) -> None:
    """Try an address and an API key, and store them under a name; the first context becomes the default."""
    if not name or len(name) > _LONGEST_NAME or not name.isprintable() or name.startswith("-"):
        raise StartError(f"the name must have 1 to {_LONGEST_NAME} printable characters and must not begin with -")
    address = checked_url(url)
    key = None if no_key else key_of(key_file) or _ask_key()
    if not no_try:
        _try(address, key)
    if key is not None and address.startswith("http:") and not _is_loopback(address):
        print("medialedger: warning: http sends the key unencrypted; use https", file=sys.stderr)
    path = contexts_file(environment())
    contexts = read_contexts(path).with_context(name, Context(address, key))
    write_contexts(path, contexts)
    print(f"{name} is {address}" + (", the default" if contexts.used == name else ""))


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


@context.command("use")
@click.argument("name", type=TEXT, metavar="[NAME]", required=False, help="The context (default: none).")
def use_context(name: str | None) -> None:
    """Make a context the default; without a name, commands go to this machine again."""
    path = contexts_file(environment())
    write_contexts(path, read_contexts(path).with_default(name))
    print("commands go to the product of this home" if name is None else f"commands go to {name}")


@context.command("list")
@form_option
def list_contexts(form: str) -> None:
    """List every context, without its key."""
    contexts = read_contexts(contexts_file(environment()))
    documents = [
        {"name": name, "url": context.url, "hasKey": context.key is not None, "inUse": name == contexts.used}
        for name, context in contexts.all.items()
    ]
    columns = (
        TableColumn("name", field("name")),
        TableColumn("url", field("url"), Kind.LONG),
        TableColumn("key", field("hasKey")),
        TableColumn("default", field("inUse"), Kind.STATE),
    )
    print_list(documents, columns, form=form, none="no contexts")


@context.command("remove")
@click.argument("name", type=TEXT, metavar="NAME", help="The context.")
@consent_option
def remove_context(name: str, yes: bool) -> None:
    """Forget an address and its key."""
    path = contexts_file(environment())
    contexts = read_contexts(path)
    contexts.get(name)
    confirm(yes, f"forget the context {name} with its key")
    write_contexts(path, contexts.without(name))
    print(f"{name} is forgotten")

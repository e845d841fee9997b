"""`medialedger destination`: adds, tests and lists the destinations of publications."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Final

from api.cli.output import Column, Document, Kind, field, print_list, text
from api.cli.printable import printable
from api.cli.remote.lookup import named
from api.cli.remote.rest_api import RestApi
from api.cli.shell import secret_text
from api.wiring.startup import StartError

PATH: Final = "/api/media/destination"
_TARGETS: Final = ("FACEBOOK", "TWITTER", "YOUTUBE", "MPX", "CUSTOM", "S3", "SFTP", "HTTP", "FILESYSTEM")


def run(args: Namespace, api: RestApi) -> int:
    _ACTIONS[args.action](args, api)
    return 0


def _add(args: Namespace, api: RestApi) -> None:
    body = {"name": args.name, "target": args.target, "destinationJson": secret_text(args.config)}
    key = api.call("POST", f"{PATH}/", body=body).document["id"]
    print(f"destination {key}\nnot active yet: run `medialedger destination test {key}` to test and activate it")


def _test(args: Namespace, api: RestApi) -> None:
    destination = named(api.documents(f"{PATH}/"), args.destination, kind="destination")
    result = api.call("PUT", f"{PATH}/activate/{destination['id']}").document
    if result.get("actionRequired") is not False:
        raise StartError(f"action required: {result.get('actionDescription')}")
    print(f"{printable(str(destination.get('name')))} is active: the target was reached with this configuration")


def _list(args: Namespace, api: RestApi) -> None:
    """Print the destinations without their configurations."""
    columns = (
        Column("id", field("id")),
        Column("name", field("name"), Kind.LONG),
        Column("target", field("targetString")),
        Column("active", field("active"), Kind.STATE),
    )
    print_list(map(_document, api.documents(f"{PATH}/")), columns, form=args.form, none="no destinations")


def _document(destination: Document) -> Document:
    number = destination.get("target")
    name = _TARGETS[number] if isinstance(number, int) and 0 <= number < len(_TARGETS) else text(number)
    return {
        "id": destination.get("id"),
        "name": destination.get("name"),
        "target": number,
        "targetString": name,
        "active": destination.get("active"),
    }


_ACTIONS: Final[Mapping[str, Callable[[Namespace, RestApi], None]]] = {"add": _add, "test": _test, "list": _list}

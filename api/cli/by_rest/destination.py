"""`medialedger destination`: adds, tries and lists the places that publications go to."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Final

from api.cli.by_rest.named import named
from api.cli.output import Column, Document, Kind, field, print_list, text
from api.cli.printable import printable
from api.cli.rest_api import RestApi
from api.cli.secret_text import secret_text
from api.wiring.startup import StartError

PATH: Final = "/api/media/destination"
_TARGETS: Final = ("FACEBOOK", "TWITTER", "YOUTUBE", "MPX", "CUSTOM", "S3", "SFTP", "HTTP", "FILESYSTEM")


def run(args: Namespace, api: RestApi) -> int:
    _ACTIONS[args.action](args, api)
    return 0


def _add(args: Namespace, api: RestApi) -> None:
    body = {"name": args.name, "target": args.target, "destinationJson": secret_text(args.config)}
    key = api.call("POST", f"{PATH}/", body=body).document["id"]
    print(f"destination {key}\nit is not active before `medialedger destination test {key}` has reached it")


def _test(args: Namespace, api: RestApi) -> None:
    found = named(api.documents(f"{PATH}/"), args.destination, kind="destination")
    tried = api.call("PUT", f"{PATH}/activate/{found['id']}").document
    if tried.get("actionRequired") is not False:
        raise StartError(f"action required: {tried.get('actionDescription')}")
    print(f"{printable(str(found.get('name')))} is active: the target was reached as it is configured")


def _list(args: Namespace, api: RestApi) -> None:
    """Never their configurations."""
    columns = (
        Column("id", field("id")),
        Column("name", field("name"), Kind.LONG),
        Column("target", field("targetString")),
        Column("active", field("active"), Kind.STATE),
    )
    print_list(map(_document, api.documents(f"{PATH}/")), columns, form=args.form, none="no destinations")


def _document(one: Document) -> Document:
    number = one.get("target")
    name = _TARGETS[number] if isinstance(number, int) and 0 <= number < len(_TARGETS) else text(number)
    return {"id": one.get("id"), "name": one.get("name"), "target": number, "targetString": name, "active": one.get("active")}


_ACTIONS: Final[Mapping[str, Callable[[Namespace, RestApi], None]]] = {"add": _add, "test": _test, "list": _list}

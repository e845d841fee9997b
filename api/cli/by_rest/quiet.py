"""`medialedger quiet`: stop what leaves the installation, and let it go on."""

from __future__ import annotations

from argparse import Namespace
from typing import Any, Final

from api.cli.consent import confirm
from api.cli.output import Document, print_document
from api.cli.printable import printable
from api.cli.rest_api import RestApi

_PATH: Final = "/api/quiet/"


def run(args: Namespace, api: RestApi) -> int:
    print_document(_ACTIONS[args.action](args, api), _show, form=args.form)
    return 0


def _on(args: Namespace, api: RestApi) -> Document:
    return _ordered(api, {"quiet": True, "reason": args.reason})


def _off(args: Namespace, api: RestApi) -> Document:
    confirm(args, "send everything that has waited, to the real receivers")
    return _ordered(api, {"quiet": False, "reason": None})


def _read(args: Namespace, api: RestApi) -> Document:
    return api.document(_PATH)


def _ordered(api: RestApi, body: dict[str, Any]) -> Document:
    answer: Document = api.call("PUT", _PATH, body=body).document
    return answer


def _show(found: Document) -> str:
    if not found["quiet"]:
        return "the installation is not quiet"
    reason = "" if found["reason"] is None else f": {found['reason']}"
    return printable(f"the installation is quiet since {found['since']}{reason}")


_ACTIONS: Final = {"on": _on, "off": _off, "show": _read}

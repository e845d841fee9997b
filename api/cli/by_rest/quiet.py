"""`medialedger quiet`: stops everything that leaves the installation, and resumes it."""

from __future__ import annotations

from argparse import Namespace
from typing import Any, Final

from api.cli.output import Document, print_document
from api.cli.printable import printable
from api.cli.remote.rest_api import RestApi
from api.cli.shell import confirm

_PATH: Final = "/api/quiet/"


def run(args: Namespace, api: RestApi) -> int:
    print_document(_ACTIONS[args.action](args, api), _show, form=args.form)
    return 0


def _on(args: Namespace, api: RestApi) -> Document:
    return _order(api, {"quiet": True, "reason": args.reason})


def _off(args: Namespace, api: RestApi) -> Document:
    confirm(args, "send everything that has been waiting to the real receivers")
    return _order(api, {"quiet": False, "reason": None})


def _read(args: Namespace, api: RestApi) -> Document:
    return api.document(_PATH)


def _order(api: RestApi, body: dict[str, Any]) -> Document:
    answer: Document = api.call("PUT", _PATH, body=body).document
    return answer


def _show(document: Document) -> str:
    if not document["quiet"]:
        return "the installation is not quiet"
    reason = "" if document["reason"] is None else f": {document['reason']}"
    return printable(f"the installation has been quiet since {document['since']}{reason}")


_ACTIONS: Final = {"on": _on, "off": _off, "show": _read}

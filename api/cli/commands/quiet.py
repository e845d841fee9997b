"""`medialedger quiet`: stops everything that leaves the installation, and resumes it."""

from __future__ import annotations

from typing import Any, Final

import click

from api.cli.command import TEXT, calls_api, consent_option, form_option, group
from api.cli.output import Document, print_document
from api.cli.remote.rest_api import RestApi
from api.cli.shell import confirm
from api.cli.terminal_text import printable

_PATH: Final = "/api/quiet/"


@group(
    "quiet",
    examples="""
    medialedger quiet on --reason 'maintenance of the network'
    medialedger quiet show
    medialedger quiet off
    """,
)
def quiet() -> None:
    """Stop what leaves the installation, and resume it. While the installation is quiet, nothing leaves it: no webhooks,
    callbacks, jobs, pushes, encoders, provisioning, records for Kafka or time stamps, and the schedule starts nothing. The API, the
    console and the audit continue. What has been waiting is sent when the quiet ends."""


@quiet.command("on")
@click.option("--reason", type=TEXT, metavar="TEXT", help="The reason, shown wherever the quiet is.")
@form_option
@calls_api
def begin_quiet(api: RestApi, *, reason: str | None, form: str) -> None:
    """Stop everything that leaves the installation."""
    _order(api, {"quiet": True, "reason": reason}, form=form)


@quiet.command("off")
@consent_option
@form_option
@calls_api
def end_quiet(api: RestApi, *, yes: bool, form: str) -> None:
    """Resume everything, including what has been waiting."""
    confirm(yes, "send everything that has been waiting to the real receivers")
    _order(api, {"quiet": False, "reason": None}, form=form)


@quiet.command("show")
@form_option
@calls_api
def show_quiet(api: RestApi, form: str) -> None:
    """Show whether the installation is quiet, why, and since when."""
    print_document(api.document(_PATH), _sentence, form=form)


def _order(api: RestApi, body: dict[str, Any], *, form: str) -> None:
    print_document(api.call("PUT", _PATH, body=body).document, _sentence, form=form)


def _sentence(document: Document) -> str:
    if not document["quiet"]:
        return "the installation is not quiet"
    reason = "" if document["reason"] is None else f": {document['reason']}"
    return printable(f"the installation has been quiet since {document['since']}{reason}")

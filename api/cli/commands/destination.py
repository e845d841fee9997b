"""`medialedger destination`: adds, tests and lists the destinations of publications."""

from __future__ import annotations

from typing import Final

import click

from api.cli.command import TEXT, TITLE, calls_api, form_option, group
from api.cli.output import Document, Kind, TableColumn, field, print_list, text
from api.cli.remote.lookup import named
from api.cli.remote.rest_api import RestApi
from api.cli.shell import secret_text
from api.cli.terminal_text import printable
from api.wiring.startup import StartError

PATH: Final = "/api/media/destination"
TARGETS: Final = ("FACEBOOK", "TWITTER", "YOUTUBE", "MPX", "CUSTOM", "S3", "SFTP", "HTTP", "FILESYSTEM")
"""The names of the targets; a target's place is its number in the API."""


@group(
    "destination",
    examples="""
    medialedger destination add Archive --target S3 --config s3.json
    echo '{"path": "films"}' | medialedger destination add Share --target FILESYSTEM --config -
    medialedger destination test Archive
    medialedger destination list --json
    """,
)
def destination() -> None:
    """Add the places that films are published to, and check that they can be reached: a test logs in, writes and removes what
    a publication needs, and says in one sentence what is wrong and what to do. Keys and passwords are read from a file or from
    standard input, are stored encrypted, and are never shown."""


@destination.command("add")
@click.argument("name", type=TITLE, metavar="NAME", help="The name of the destination.")
@click.option(
    "--target",
    type=click.Choice(TARGETS, case_sensitive=False),
    required=True,
    metavar="TARGET",
    help="Such as S3, SFTP, HTTP or FILESYSTEM.",
)
@click.option(
    "--config",
    type=TEXT,
    required=True,
    metavar="FILE",
    help="The configuration as JSON, readable only by its owner (-: standard input).",
)
@calls_api
def add_destination(api: RestApi, *, name: str, target: str, config: str) -> None:
    """Add a destination; it stays inactive until a test succeeds."""
    body = {"name": name, "target": target, "destinationJson": secret_text(config)}
    key = api.call("POST", f"{PATH}/", body=body).document["id"]
    print(f"destination {key}\nnot active yet: run `medialedger destination test {key}` to test and activate it")


@destination.command("test")
@click.argument("destination", type=TEXT, metavar="NAME_OR_ID", help="The name or the id of the destination.")
@calls_api
def test_destination(api: RestApi, destination: str) -> None:
    """Try the target; on success the destination becomes active, otherwise the exit code is 1."""
    match = named(api.documents(f"{PATH}/"), destination, kind="destination")
    result = api.call("PUT", f"{PATH}/activate/{match['id']}").document
    if result.get("actionRequired") is not False:
        raise StartError(f"action required: {result.get('actionDescription')}")
    print(f"{printable(str(match.get('name')))} is active: the target was reached with this configuration")


@destination.command("list")
@form_option
@calls_api
def list_destinations(api: RestApi, form: str) -> None:
    """List every destination by name, without its configuration."""
    columns = (
        TableColumn("id", field("id")),
        TableColumn("name", field("name"), Kind.LONG),
        TableColumn("target", field("targetString")),
        TableColumn("active", field("active"), Kind.STATE),
    )
    print_list(map(_document, api.documents(f"{PATH}/")), columns, form=form, none="no destinations")


def _document(destination: Document) -> Document:
    number = destination.get("target")
    name = TARGETS[number] if isinstance(number, int) and 0 <= number < len(TARGETS) else text(number)
    return {
        "id": destination.get("id"),
        "name": destination.get("name"),
        "target": number,
        "targetString": name,
        "active": destination.get("active"),
    }

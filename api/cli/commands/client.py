"""`medialedger client`: adds, lists and revokes clients and their API keys. It needs the key of an admin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import click

from api.cli.command import (
    POSITION,
    TEXT,
    Function,
    Installation,
    calls_api,
    consent_option,
    form_option,
    group,
    installation_options,
)
from api.cli.output import JSON, NDJSON, Document, Kind, TableColumn, field, print_list
from api.cli.remote.lookup import unique
from api.cli.remote.rest_api import RestApi, segment
from api.cli.shell import confirm
from api.cli.terminal_text import printable

ROLES: Final = ("viewer", "operator", "keys", "auditor", "admin")
_PATH: Final = "/api/client"
_NAME: Final = click.argument("name", type=TEXT, metavar="NAME", help="The name of the client.")


@group(
    "client",
    examples="""
    medialedger client add playout --role operator --role keys
    medialedger client list
    medialedger client rotate playout --expire-others-after 86400
    medialedger client revoke playout 3f0c2a
    medialedger client drm packager --playready-la-url https://drm.example.com/rightsmanager.asmx
    """,
)
def client() -> None:
    """Create, list and revoke clients and API keys. A key is shown once, when it is created."""


@client.command("add")
@click.argument("name", type=TEXT, metavar="NAME", help="1 to 64 of A-Z a-z 0-9 . _ -")
@click.option("--role", "roles", type=click.Choice(ROLES), multiple=True, required=True, help="A role; may be given several times.")
@click.option("--trust-actor", is_flag=True, help="Allow the client to name its end user in the header X-Actor.")
@installation_options
def add_client(installation: Installation, *, name: str, roles: tuple[str, ...], trust_actor: bool) -> None:
    """Create a client and show its key, once. A missing database is created."""
    api = installation.api(make=True)
    try:
        body = {"name": name, "roles": roles, "trustActor": trust_actor}
        print(api.call("POST", f"{_PATH}/", body=body).document["key"])
    finally:
        api.close()


@client.command("trust-actor")
@_NAME
@click.argument("trusted", type=click.Choice(("yes", "no")), metavar="{yes|no}", help="Whether the client may name its end user.")
@calls_api
def trust_actor(api: RestApi, *, name: str, trusted: str) -> None:
    """Allow or forbid the client to name its end user in the header X-Actor."""
    path = f"{_PATH}/{segment(name)}"
    api.call("PUT", path, body={"roles": api.document(path)["roles"], "trustActor": trusted == "yes"})


@client.command("list")
@form_option
@calls_api
def list_clients(api: RestApi, form: str) -> None:
    """List every client with its roles and keys (never the text of a key). A key has a row of its own; JSON forms have one document
    per client, as the API returns it."""
    clients = api.documents(f"{_PATH}/")
    print_list(clients if form in (JSON, NDJSON) else _rows(clients), _COLUMNS, form=form, none="no clients")


@client.command("rotate")
@_NAME
@click.option(
    "--expire-others-after", type=POSITION, metavar="SECONDS", help="How long the older keys remain valid (default: for ever)."
)
@calls_api
def rotate_key(api: RestApi, *, name: str, expire_others_after: int | None) -> None:
    """Create another key and show it, once."""
    body = {} if expire_others_after is None else {"expireOthersAfter": expire_others_after}
    print(api.call("POST", f"{_PATH}/{segment(name)}/keys/", body=body).document["key"])


@client.command("revoke")
@_NAME
@click.argument(
    "key_id",
    type=TEXT,
    metavar="[KEY_ID]",
    required=False,
    help="The key's id, or its beginning, as `medialedger client list` shows it (default: the client).",
)
@consent_option
@calls_api
def revoke_key(api: RestApi, *, name: str, key_id: str | None, yes: bool) -> None:
    """Revoke one key, or delete the client with all its keys."""
    path = f"{_PATH}/{segment(name)}"
    keys = [str(key.get("keyId")) for key in api.document(path).get("keys") or ()]
    if key_id is None:
        confirm(yes, f"delete the client {name} with all its keys at {api.label}")
        api.call("DELETE", path)
    else:
        key = unique(keys, key_id, what=f"key of {name}")
        confirm(yes, f"revoke the key {key} of {name} at {api.label}")
        api.call("DELETE", f"{path}/keys/{segment(key)}")
    print("revoked")


_DRM: Final = (
    click.option(
        "--playready-la-url", "playreadyLaUrl", type=TEXT, metavar="URL", help="LA_URL of PlayReady headers (default: none)."
    ),
    click.option(
        "--widevine-provider",
        "widevineProvider",
        type=TEXT,
        metavar="TEXT",
        help="Provider in Widevine PSSH boxes (default: none).",
    ),
    click.option(
        "--content-id-in-pssh/--no-content-id-in-pssh",
        "contentIdInPssh",
        default=None,
        help="Content id in Widevine PSSH boxes (default: no).",
    ),
    click.option(
        "--fairplay-uri-template",
        "fairplayUriTemplate",
        type=TEXT,
        metavar="TEMPLATE",
        help="May contain {host} {client} {content_id} {kid} {iv}.",
    ),
    click.option(
        "--fairplay-key-format-versions",
        "fairplayKeyFormatVersions",
        type=TEXT,
        metavar="TEXT",
        help="Such as 1, or 1/2 (default: 1).",
    ),
    click.option(
        "--fairplay-direct-plain-value/--no-fairplay-direct-plain-value",
        "fairplayDirectPlainValue",
        default=None,
        help="Also write a FairPlay key directly below its ContentKey (default: no).",
    ),
    click.option(
        "--fairplay-hex-form/--no-fairplay-hex-form",
        "fairplayHexForm",
        default=None,
        help="Write a FairPlay key and its IV as hexadecimal characters (default: no).",
    ),
)
"""The options for the DRM settings of a client, which are named like the fields of the API."""


def _drm_options(function: Function) -> Function:
    for option in reversed(_DRM):
        function = option(function)
    return function


@client.command("drm")
@_NAME
@_drm_options
@calls_api
def configure_drm(api: RestApi, name: str, **settings: Any) -> None:
    """Show or change the client's DRM settings; an empty text restores a default."""
    path = f"{_PATH}/{segment(name)}/drm/"
    changes = {member: value if value != "" else None for member, value in settings.items() if value is not None}
    shown = api.call("PUT", path, body=changes).document if changes else api.document(path)
    for member, value in shown.items():
        print(printable(f"{_snake_case(member)}: {'' if value is None else value}"))


def _snake_case(name: str) -> str:
    """Return the name of a setting in lower case, with underscores."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _ever(name: str) -> Callable[[Document], Any]:
    """Return a function that reads a time of a row's key: "never" if the key has no such time, None if the row has no key."""
    return lambda row: (row["key"].get(name) or "never") if row["key"] else None


_COLUMNS = (
    TableColumn("client", field("name"), is_id=True),
    TableColumn("roles", field("roles")),
    TableColumn("key", field("key", "keyId"), is_id=True),
    TableColumn("created", field("key", "createdAt"), Kind.TIME),
    TableColumn("expires", _ever("expiresAt"), Kind.TIME),
    TableColumn("last used", _ever("lastUsedAt"), Kind.TIME),
    TableColumn("names end users", lambda row: bool(row.get("trustActor")), wide=True),
    TableColumn("since", field("createdAt"), Kind.TIME, wide=True),
)


def _rows(clients: Sequence[Document]) -> Iterator[Document]:
    for client in clients:
        keys = client.get("keys")
        for key in keys if isinstance(keys, list) and keys else [{}]:
            yield {**client, "key": key if isinstance(key, dict) else {}}

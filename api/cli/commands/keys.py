"""`medialedger keys`: imports and exports content keys, replaces the master key, and checks a packager's document. It needs the
master key file: without it nothing in the vault can be decrypted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from api.cli.command import PATH, TEXT, consent_option, group, on_database

if TYPE_CHECKING:
    from api.wiring.settings import Settings

_NEW_KEY: Final = click.option("--new-key-file", type=PATH, metavar="FILE", required=True, help="Created if it does not exist.")


@group(
    "keys",
    examples="""
    medialedger keys import keys.xml --client packager
    medialedger keys export --client packager --content-id match-17 --output keys.xml
    medialedger keys rotate --new-key-file /srv/medialedger/new-master.key
    medialedger keys dry-run request.xml
    """,
)
def keys() -> None:
    """Import content keys from a CPIX document, export them to one, encrypt the vault with a new master key, replace a master
    key that is lost, and check a packager's CPIX request. Documents with keys contain them in the clear: keep them on this
    machine."""


@keys.command("import")
@click.argument(
    "file",
    type=PATH,
    metavar="FILE.xml",
    help="The document; it contains keys in the clear, so only its owner may be able to read it.",
)
@click.option("--client", type=TEXT, metavar="NAME", required=True, help="The client that owns the keys.")
@on_database
async def bring(settings: Settings, *, file: Path, client: str) -> None:
    """Import the keys of a CPIX document; a kid that is stored with another key is an error."""
    from api.cli.local.keys import import_keys

    await import_keys(settings, file, client=client)


@keys.command("export")
@click.option("--client", type=TEXT, metavar="NAME", required=True, help="The client that owns the keys.")
@click.option("--content-id", type=TEXT, metavar="ID", required=True, help="The content.")
@click.option("--output", type=PATH, metavar="FILE.xml", required=True, help="The document, which must not exist yet.")
@on_database
async def export(settings: Settings, *, client: str, content_id: str, output: Path) -> None:
    """Write the keys of one content to a CPIX document, in the clear, mode 0600."""
    from api.cli.local.keys import export_keys

    await export_keys(settings, content_id, client=client, output=output)


@keys.command("rotate")
@_NEW_KEY
@on_database
async def rotate(settings: Settings, new_key_file: Path) -> None:
    """Encrypt all secrets of the vault with a new master key."""
    from api.cli.local.keys import rotate_master_key

    await rotate_master_key(settings, new_key_file)


@keys.command("replace-lost")
@_NEW_KEY
@consent_option
@on_database
async def replace_lost(settings: Settings, *, new_key_file: Path, yes: bool) -> None:
    """Give the database a new master key when no copy of the old one exists any more."""
    from api.cli.local.keys import replace_lost_master_key

    await replace_lost_master_key(settings, new_key_file, yes=yes)


@keys.command("dry-run")
@click.argument("file", type=PATH, metavar="FILE.xml", help="The request.")
@on_database
async def check(settings: Settings, file: Path) -> int:
    """Check a packager's CPIX request; no key is issued."""
    from api.cli.local.keys import check_request

    return check_request(file)

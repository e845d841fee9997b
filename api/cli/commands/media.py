"""`medialedger media`: brings a file of this machine into the product, as a film of a new Event."""

from __future__ import annotations

from pathlib import Path

import click

from api.cli.command import PATH, TEXT, TITLE, Installation, group, refuse_remote
from api.cli.remote.jobs import OWNER


@group(
    "media",
    examples="""
    medialedger media ingest film.mov --title 'The film' --publish
    medialedger media ingest film.mov --title 'The film' --drm
    """,
)
def media() -> None:
    """Create an Event from a file, have it packaged for HLS and DASH by the running workers, and follow the job. A file outside
    the media root is copied there for as long as the job lasts."""


@media.command("ingest")
@click.argument("file", type=PATH, metavar="FILE", help="Any container and codec that ffmpeg reads.")
@click.option("--title", type=TITLE, required=True, metavar="TEXT", help="The title of the Event.")
@click.option("--drm", is_flag=True, help="Encrypt the packages with a key of the key provider.")
@click.option("--publish", is_flag=True, help="Make the Event public when it is packaged.")
@click.option(
    "--client",
    type=TEXT,
    default=OWNER,
    metavar="NAME",
    help=f"The client that owns the job and the content key (default: {OWNER}).",
)
@click.option("--local", is_flag=True, help="Use the product of this home, even if there is a default context.")
def ingest(file: Path, *, title: str, drm: bool, publish: bool, client: str, local: bool) -> None:
    """Create an Event from a file, package the file for players, and follow the job."""
    refuse_remote(Installation(local=local).remote())
    from api.cli.local.media import check_file, ingest_film
    from api.cli.remote.contexts import local_api

    check_file(file)
    api = local_api()
    try:
        ingest_film(api, file, title=title, drm=drm, publish=publish, client=client)
    finally:
        api.close()

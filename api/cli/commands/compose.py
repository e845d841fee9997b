"""`medialedger compose`: shows the playlist of an Event with a time line, its state, and the progress of the job of its film."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import click

from api.cli.command import ID, form_option, group, on_database

if TYPE_CHECKING:
    from api.wiring.settings import Settings


@group(
    "compose",
    examples="""
    medialedger compose show 3fa85f64-5717-4562-b3fc-2c963f66afa6
    """,
)
def compose() -> None:
    """Show when each item and each break of a playlist begins, as far as lengths are known, the state of the Event and its film,
    why it could not be made, and the progress of its job."""


@compose.command("show")
@click.argument("event", type=ID, metavar="EVENT", help="The id of an Event with a playlist.")
@form_option
@on_database
async def show(settings: Settings, *, event: UUID, form: str) -> None:
    """Show a time line of items and breaks, the state of the film, and the progress of its job."""
    from api.cli.local.playlist import print_playlist

    await print_playlist(settings, event, form=form)

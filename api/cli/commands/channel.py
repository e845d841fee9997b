"""`medialedger channel`: shows what the encoders of a channel would do, and asks its publishing points for their state."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import click

from api.cli.command import ID, TEXT, form_option, group, on_database

if TYPE_CHECKING:
    from api.wiring.settings import Settings


@group(
    "channel",
    examples="""
    medialedger channel test 'Main channel'
    medialedger channel test 3fa85f64-5717-4562-b3fc-2c963f66afa6 --json
    """,
)
def channel() -> None:
    """Show what the encoders of a channel would do for an Event, and ask each of its publishing points once for its state, as the
    worker `prober` does: with the key from the vault, and only at addresses that are allowed. Nothing is started or changed."""


@channel.command("test")
@click.argument("channel", type=TEXT, metavar="NAME_OR_ID", help="The name or the id of the channel.")
@click.option(
    "--event", type=ID, metavar="ID", help="Use the hosts that are provisioned for this Event in addresses with placeholders."
)
@form_option
@on_database
async def test(settings: Settings, *, channel: str, event: UUID | None, form: str) -> int:
    """Ask a channel's publishing points for their state; the exit code is 1 if one reports none."""
    from api.cli.local.channel import test_channel

    return await test_channel(settings, channel, event=event, form=form)

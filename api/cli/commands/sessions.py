"""`medialedger sessions`: lists the sessions of encoders and pushes, and takes an Event off the air."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from api.cli.command import TEXT, consent_option, form_option, group, on_database

if TYPE_CHECKING:
    from api.wiring.settings import Settings


@group(
    "sessions",
    examples="""
    medialedger sessions list
    medialedger sessions list --json
    medialedger sessions stop 'Main channel'
    """,
)
def sessions() -> None:
    """List the sessions: processes that run until they are stopped, such as the encoders of Events on the air. `stop` takes an
    Event off the air and leaves its state; its next change to the state 1 or 2 starts it again."""


@sessions.command("list")
@form_option
@on_database
async def list_sessions(settings: Settings, form: str) -> None:
    """List the sessions under way, then the last ones that ended."""
    from api.cli.local.sessions import print_sessions

    await print_sessions(settings, form=form)


@sessions.command("stop")
@click.argument("target", type=TEXT, metavar="CHANNEL_OR_EVENT", help="The id of the Event, or the id or name of its channel.")
@consent_option
@on_database
async def stop(settings: Settings, *, target: str, yes: bool) -> None:
    """Take an Event off the air; its state stays as it is."""
    from api.cli.local.sessions import stop_session

    await stop_session(settings, target, yes=yes)

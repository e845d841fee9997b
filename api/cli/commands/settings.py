"""`medialedger settings`: the settings with their values, origins and meanings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.cli.command import command, form_option, on_machine, place_options

if TYPE_CHECKING:
    from api.wiring.settings import Settings


@command(
    "settings",
    examples="""
    medialedger settings
    medialedger settings --port 9000 --json
    """,
)
@place_options
@form_option
@on_machine
async def settings(settings: Settings, form: str) -> None:
    """Show every setting with its value, where the value comes from and what it means. Secrets are masked. With the options of
    `medialedger up` it shows the values that this command would use."""
    from dataclasses import asdict

    from api.cli.output import Kind, TableColumn, field, print_list
    from api.cli.run.runner import warn_of_unknown

    warn_of_unknown(settings)
    columns = (
        TableColumn("name", field("name")),
        TableColumn("value", field("value"), Kind.LONG),
        TableColumn("from", field("origin")),
        TableColumn("meaning", field("meaning"), Kind.LONG),
    )
    print_list(map(asdict, settings.listing()), columns, form=form, none="no settings")

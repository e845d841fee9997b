"""`medialedger demo`: loads a demo into the product that runs on this machine, or removes it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from api.cli.command import POSITION, SCHEDULE_TIME, consent_option, group, on_machine, place_options
from api.cli.demo import SEED

if TYPE_CHECKING:
    from api.wiring.settings import Settings


@group(
    "demo",
    examples="""
    medialedger demo load
    medialedger demo load --seed 7 --around 2026-11-25T12:00:00Z
    medialedger demo remove
    """,
)
def demo() -> None:
    """Fill an installation that runs on this machine with a schedule around the present time, live test pictures, films, jobs in
    all states, publications and a webhook that fails, through the API. Existing parts of the demo are left as they are; they are
    found in the log by the client demo-loader, which creates them. An installation with other records is refused without --yes."""


@demo.command("load")
@click.option(
    "--seed",
    type=POSITION,
    metavar="N",
    help=f"The same number gives the same titles and ids (default: {SEED}, or that of the loaded demo).",
)
@click.option("--around", type=SCHEDULE_TIME, metavar="ISO", help="The time in the middle of the schedule (default: now).")
@click.option("--yes", is_flag=True, help="Load the demo even if this installation already has Events, rooms or other records.")
@click.option(
    "--films",
    type=click.IntRange(0, 4),
    default=4,
    metavar="N",
    help="The number of films, 0 to 4; with 0, nothing that needs one is created (default: 4).",
)
@place_options
@on_machine
async def load(settings: Settings, *, seed: int | None, around: datetime | None, yes: bool, films: int) -> None:
    """Create the missing parts of the demo, and wait for its films."""
    from api.cli.demo.loader import load_demo

    await load_demo(settings, seed=seed, around=around, beside_others=yes, films=films)


@demo.command("remove")
@consent_option
@place_options
@on_machine
async def remove(settings: Settings, yes: bool) -> None:
    """Remove the objects of the demo, including changed ones, and nothing else."""
    from api.cli.demo.loader import remove_demo

    await remove_demo(settings, yes=yes)

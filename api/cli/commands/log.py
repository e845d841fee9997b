"""`medialedger log`: the partitions of the log, their seals, and their files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from api.cli.command import PATH, POSITIVE, form_option, group, on_database

if TYPE_CHECKING:
    from api.wiring.settings import Settings


@group(
    "log",
    examples="""
    medialedger log partitions
    medialedger log seal
    medialedger log export 1 --output events-1.gz
    """,
)
def log() -> None:
    """List, seal and export the partitions of the log. It is partitioned by position. A full partition can be sealed, which records
    its content, and then exported."""


@log.command("partitions")
@form_option
@on_database
async def partitions(settings: Settings, form: str) -> None:
    """List every partition with its positions, times, sizes and seal."""
    from api.cli.local.partitions import print_partitions

    await print_partitions(settings, form=form)


@log.command("seal")
@on_database
async def seal(settings: Settings) -> None:
    """Verify and seal the full partitions that are not sealed yet."""
    from api.cli.local.partitions import seal_partitions

    await seal_partitions(settings)


@log.command("export")
@click.argument("position", type=POSITIVE, metavar="POSITION", help="The first position of the partition.")
@click.option("--output", type=PATH, required=True, metavar="PATH", help="The file, which must not exist yet.")
@on_database
async def export(settings: Settings, *, position: int, output: Path) -> None:
    """Write a sealed partition to a file, which can be verified without a database."""
    from api.cli.local.partitions import export_partition

    await export_partition(settings, position, path=output)

"""`medialedger backup`, `restore` and `restored`: back-ups of the database, and the epoch of the log after a restore."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from api.cli.command import PATH, POSITION, TEXT, command, on_database

if TYPE_CHECKING:
    from api.wiring.settings import Settings

_ARCHIVE: Final = click.argument(
    "file", type=PATH, metavar="FILE", callback=lambda ctx, param, file: file.absolute(), help="The archive; mode 0600."
)


@command(
    "backup",
    examples="""
    medialedger backup /mnt/backups/monday.medialedger
    """,
)
@_ARCHIVE
@on_database
async def backup(settings: Settings, file: Path) -> int:
    """Write the database to one file, as of one moment, even while the product is running. It does not contain the master key:
    keep a copy elsewhere. It does not contain the media either, only a list of their names."""
    from api.cli.local.backup import write_backup

    return await write_backup(settings, file)


@command(
    "restore",
    examples="""
    medialedger restore /mnt/backups/monday.medialedger
    medialedger restore --drill /mnt/backups/monday.medialedger
    """,
)
@_ARCHIVE
@click.option("--drill", is_flag=True, help="Keep the copy quiet: nothing leaves it until `medialedger quiet off`.")
@on_database
async def restore(settings: Settings, *, file: Path, drill: bool) -> int:
    """Create a database from a back-up, in a home without one or in an empty database of MEDIALEDGER_DATABASE_URL; check its
    log, and begin a new epoch as `medialedger restored` does. The master key of the back-up must be in its place. A damaged archive
    is refused before anything is created."""
    from api.cli.local.backup import restore_backup

    return await restore_backup(settings, file, drill=drill)


@command(
    "restored",
    examples="""
    medialedger restored
    medialedger restored --since 1200 --reason 'back-up of 2 May'
    """,
)
@click.option(
    "--since", type=POSITION, metavar="POSITION", help="The last position that was not lost (default: the end of the log)."
)
@click.option("--reason", type=TEXT, default="restored", metavar="TEXT", help="The reason, for the record (default: restored).")
@on_database
async def restored(settings: Settings, *, since: int | None, reason: str) -> int:
    """Begin a new epoch of the log. Run it once after every restore of the database, and after the promotion of a standby that
    may lack the latest commits, while no API and no worker is running: positions are then assigned again, and the records of
    the lost ones in Kafka become void. No consumer keeps a checkpoint after the position where the epoch begins."""
    from api.cli.local.backup import begin_restored_epoch

    return await begin_restored_epoch(settings, since=since, reason=reason)

"""`medialedger migrate`, `projections` and `builds`: the schema and the views of the database, and the builds that run on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from api.cli.command import TEXT, command, form_option, group, on_database, on_machine

if TYPE_CHECKING:
    from api.wiring.settings import Settings


@command(
    "migrate",
    examples="""
    medialedger migrate
    medialedger migrate --status
    medialedger migrate --finish
    """,
)
@click.option("--finish", is_flag=True, help="Wait until no older build is running, then finish the upgrade.")
@click.option("--status", is_flag=True, help="Change nothing; show which migrations the database has and lacks.")
@click.option("--parent", type=int, hidden=True)
@on_machine
async def migrate(settings: Settings, *, finish: bool, status: bool, parent: int | None) -> int:
    """Bring the database's schema up to date. `up`, `api` and `workers` do the same when they start. Objects that older builds
    need stay until none is running any more; then a serving process completes the upgrade in the background, or this command with
    --finish."""
    from api.cli.local import schema

    if parent is not None:
        return await schema.finish_for(settings, parent)
    if status:
        return await schema.print_migrations(settings)
    await schema.migrate(settings, finish_upgrade=finish)
    return 0


@group(
    "projections",
    examples="""
    medialedger projections list
    medialedger projections rebuild event
    """,
)
def projections() -> None:
    """List the views that queries read, or rebuild one from the log. Views are written together with the log, so no process
    has to run to maintain them."""


@projections.command("list")
@form_option
@on_database
async def list_views(settings: Settings, form: str) -> None:
    """List every view with its version and the time when it was built."""
    from api.cli.local.schema import print_views

    await print_views(settings, form=form)


@projections.command("rebuild")
@click.argument("name", type=TEXT, metavar="NAME", help="The view, as `medialedger projections list` names it.")
@on_database
async def rebuild(settings: Settings, name: str) -> None:
    """Rebuild a view from the log, under live traffic."""
    from api.cli.local.schema import rebuild_view

    await rebuild_view(settings, name)


@command(
    "builds",
    examples="""
    medialedger builds
    """,
)
@form_option
@on_database
async def builds(settings: Settings, form: str) -> None:
    """List the processes that run on the database with the numbers of their builds, and the oldest build that may start."""
    from api.cli.local.schema import print_builds

    await print_builds(settings, form=form)

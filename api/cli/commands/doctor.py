"""`medialedger doctor`: looks for problems of this installation, whether or not the product runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from api.cli.command import NEEDS_ATTENTION, command, form_option, on_machine

if TYPE_CHECKING:
    from api.wiring.settings import Settings


@command(
    "doctor",
    examples="""
    medialedger doctor
    medialedger doctor --json
    medialedger doctor --media
    """,
)
@click.option(
    "--media",
    is_flag=True,
    help="Only try ffmpeg and ffprobe, in small runs with measured results, and store the verdict: those on PATH are used if all "
    "trials pass, whatever their release.",
)
@form_option
@on_machine
async def doctor(settings: Settings, *, media: bool, form: str) -> int:
    """Check the home, the port, the disk, the database, programs and settings, whether or not the product runs, and say what to
    do about each finding. Nothing is changed. `status` checks a running installation. With --media it tries the programs for
    media instead, which takes about half a minute, and stores the verdict in the home; restart the product after that."""
    import asyncio

    from api.cli.local.doctor import findings, try_programs
    from api.cli.output import print_findings

    results = await asyncio.to_thread(try_programs, settings.home) if media else [each async for each in findings(settings)]
    print_findings(results, form=form)
    return NEEDS_ATTENTION if any(finding.attention for finding in results) else 0

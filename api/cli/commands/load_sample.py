"""`medialedger load-sample`: writes a sample schedule, or removes it."""

from __future__ import annotations

from datetime import datetime

import click

from api.cli.command import POSITIVE, SCHEDULE_TIME, Installation, command, consent_option, refuse_remote, run_here
from api.cli.shell import confirm


@command(
    "load-sample",
    examples="""
    medialedger load-sample
    medialedger load-sample --events 500 --around 2026-11-25T12:00:00Z
    medialedger load-sample --remove
    """,
)
@click.option("--events", type=POSITIVE, default=10_000, metavar="N", help="How many Events (default: 10000).")
@click.option(
    "--around",
    type=SCHEDULE_TIME,
    metavar="ISO",
    help="Begin on the day before this time (default: on a day of the year 2031).",
)
@click.option("--remove", is_flag=True, help="Remove the sample, including what was changed in it since.")
@consent_option
@click.option("--local", is_flag=True, help="Use the database of this home, even if there is a default context.")
def load_sample(events: int, *, around: datetime | None, remove: bool, yes: bool, local: bool) -> int:
    """Write 40 rooms and a schedule of 10,000 Events, always the same, with the handlers of the API: 100 a day, from the
    year 2031 on, or around a time with --around. A second run changes nothing; existing Events keep their times. Webhooks get a
    notification of each Event: if there are any, you are asked first."""
    refuse_remote(Installation(local=local).remote())
    from api.cli.local import sample

    if remove:
        confirm(yes, f"delete {events} Events and the rooms of the sample, including later changes to them")
        return sample.remove_sample(events)
    return run_here(sample.load_sample, count=events, around=around, yes=yes)

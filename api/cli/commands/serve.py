"""`medialedger up`, `api`, `workers` and `origin`: commands that run until they are stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from api.cli.command import POSITION, POSITIVE, TEXT, Parsed, command, consent_option, place_options, serves

if TYPE_CHECKING:
    from api.wiring.settings import Settings


@command(
    "up",
    examples="""
    medialedger up
    medialedger up --demo --open
    medialedger up --quiet
    medialedger up --port 9000 --home /srv/medialedger
    MEDIALEDGER_API_PROCESSES=4 MEDIALEDGER_WORKER_PROCESSES=1 medialedger up
    """,
)
@place_options
@click.option("--open", "open_page", is_flag=True, help="Open the start page in the browser when it is ready.")
@click.option("--demo", is_flag=True, help="Load the demo when it is ready: see `medialedger demo`.")
@click.option(
    "--quiet",
    is_flag=True,
    help="Let nothing leave this machine until `medialedger quiet off`, for a copy of another installation.",
)
@click.option(
    "--yes", is_flag=True, help="With --demo: load the demo even if this installation already has Events, rooms or other records."
)
@serves
async def up(settings: Settings, *, open_page: bool, demo: bool, quiet: bool, yes: bool) -> int:
    """Run everything on this machine: the embedded PostgreSQL (unless MEDIALEDGER_DATABASE_URL names another), the API and the
    workers. On two cores or more the workers have a process of their own, and the API has one process for each further core;
    MEDIALEDGER_PROCESSES=1 runs everything in one process. SIGUSR1 restarts several processes one by one, without refusing or
    resetting a connection. SIGTERM or Ctrl-C stops it and waits for requests
    under way; a second one does not wait."""
    from api.cli.run.up import UpOptions, run

    return await run(settings, UpOptions(open_page, demo, quiet, yes))


@command(
    "api",
    examples="""
    MEDIALEDGER_DATABASE_URL=postgresql://user:password@db/medialedger medialedger api
    MEDIALEDGER_PORT=8081 medialedger api
    """,
)
@serves
async def api(settings: Settings) -> int:
    """Run only the API, on the database of MEDIALEDGER_DATABASE_URL, or next to `medialedger up` of the same home; in several
    processes with MEDIALEDGER_API_PROCESSES."""
    from api.cli.run.api import run

    return await run(settings)


def _worker_role(text: str) -> str:
    from api.wiring.catalogue import WORKER_ROLES  # imports every aggregate: most commands do not need that

    if text not in WORKER_ROLES:
        raise ValueError(f"{text!r} does not exist; choose from {', '.join(WORKER_ROLES)}")
    return text


@command(
    "workers",
    examples="""
    medialedger workers
    medialedger workers webhooks deliveries
    """,
)
@click.argument(
    "names", type=Parsed("role", _worker_role), metavar="[NAME]...", nargs=-1, help="A worker role such as webhooks (default: all)."
)
@serves
async def workers(settings: Settings, names: tuple[str, ...]) -> int:
    """Run all workers or the named roles, on the database of MEDIALEDGER_DATABASE_URL, or next to `medialedger up` of the same
    home: relay fills Kafka from the log, webhooks creates the deliveries of changes to Events, deliveries sends them;
    timekeeper starts and stops Events and their infrastructure by their schedule, and gives Events channels that are free again;
    sessions runs the encoders of Events that are on the air;
    prober asks the publishing points of live Events for their state;
    provisioning creates and removes infrastructure;
    scheduler queues jobs whose time has come, controller starts them, work and windows_capture run their steps;
    callback creates the deliveries of job notices;
    outcomes notifies the owners of jobs how the jobs ended;
    assets deletes the files of removed assets;
    syndication removes publications with their destinations;
    sealer signs checkpoints of the log;
    lists adds up the totals of lists and fills the search indexes.
    Any number of processes may run on any number of machines; they share the work. MEDIALEDGER_WORKER_PROCESSES starts several at
    once."""
    from api.cli.run.workers import run

    return await run(settings, names)


@command(
    "origin",
    examples="""
    medialedger origin
    medialedger origin --token news --hours 3
    medialedger origin --token news --read
    medialedger origin --revoke news --yes
    """,
)
@click.option(
    "--token",
    type=TEXT,
    metavar="NAME",
    help="Print a token with which an encoder may write to and read this publishing point, and exit.",
)
@click.option("--read", is_flag=True, help="With --token: a token that may only read, for players.")
@click.option("--hours", type=POSITIVE, default=12, metavar="N", help="How long the token is valid (default: 12 hours).")
@click.option(
    "--revoke", type=TEXT, metavar="NAME", help="Revoke all tokens that were issued for this publishing point so far, and exit."
)
@consent_option
@click.option("--session", type=POSITION, metavar="N", help="The number of the token's session (default: the last one plus 1).")
@serves
async def origin(
    settings: Settings, *, token: str | None, read: bool, hours: int, revoke: str | None, yes: bool, session: int | None
) -> int:
    """Run only the built-in origin, for laptops and tests: `medialedger up` has one too. It listens at MEDIALEDGER_HOST and
    MEDIALEDGER_PORT, keeps recordings in MEDIALEDGER_ORIGIN_ROOT, and needs the master key of the installation whose encoders
    write to it."""
    from api.cli.run import origin as run

    if token is not None:
        return run.print_token(settings, token, read=read, hours=hours, session=session)
    if revoke is not None:
        return run.revoke_tokens(settings, revoke, yes=yes)
    return await run.run(settings)

"""The arguments and help texts of `up` and `demo`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Final

from api.cli.argument_types import position, schedule_time
from api.cli.arguments import Command, add_place
from api.cli.output_arguments import add_consent

SEED: Final = 1

_YES: Final = "load the demo even if this installation already has Events, rooms or other records"


def _up(parser: ArgumentParser) -> None:
    add_place(parser)
    parser.add_argument("--open", action="store_true", help="open the start page in the browser when it is ready")
    parser.add_argument("--demo", action="store_true", help="load the demo when it is ready: see `medialedger demo`")
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="let nothing leave this machine until `medialedger quiet off`, for a copy of another installation",
    )
    parser.add_argument("--yes", action="store_true", help=f"with --demo: {_YES}")


def _demo(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    load = actions.add_parser("load", help="create the missing parts of the demo, and wait for its films")
    load.add_argument(
        "--seed",
        type=position,
        metavar="N",
        help=f"the same number gives the same titles and ids (default: {SEED}, or that of the loaded demo)",
    )
    load.add_argument("--around", type=schedule_time, metavar="ISO", help="the time in the middle of the schedule (default: now)")
    load.add_argument("--yes", action="store_true", help=_YES)
    load.add_argument(
        "--films",
        type=int,
        choices=range(5),
        default=4,
        metavar="N",
        help="the number of films, 0 to 4; with 0, nothing that needs one is created (default: %(default)s)",
    )
    remove = actions.add_parser("remove", help="remove the objects of the demo, including changed ones, and nothing else")
    add_consent(remove)
    for action_parser in (load, remove):
        add_place(action_parser)


UP: Final = Command(
    "run everything on this machine",
    "Runs everything on this machine: the embedded PostgreSQL (unless MEDIALEDGER_DATABASE_URL names another), the API and the "
    "workers, in one process. MEDIALEDGER_API_PROCESSES and MEDIALEDGER_WORKER_PROCESSES ask for several, which share the port; "
    "SIGUSR1 restarts them one by one, without refusing or resetting a connection. "
    "SIGTERM or Ctrl-C stops it and waits for requests under way; a second one does not wait.",
    "medialedger up\n  medialedger up --demo --open\n  medialedger up --quiet\n"
    "  medialedger up --port 9000 --home /srv/medialedger\n"
    "  MEDIALEDGER_API_PROCESSES=4 MEDIALEDGER_WORKER_PROCESSES=1 medialedger up",
    _up,
    serves=True,
    about_machine=True,
)
DEMO: Final = Command(
    "load or remove a demo",
    "Fills an installation that runs on this machine with a schedule around the present time, live test pictures, films, jobs in "
    "all states, publications and a webhook that fails, through the API. Existing parts of the demo are left as they are; they "
    "are found in "
    "the log by the client demo-loader, which creates them. An installation with other records is refused without --yes.",
    "medialedger demo load\n  medialedger demo load --seed 7 --around 2026-11-25T12:00:00Z\n  medialedger demo remove",
    _demo,
    about_machine=True,
)

"""The arguments and help texts of the commands about live video: `channel`, `sessions`, `provision` and `origin`."""

from __future__ import annotations

from argparse import ArgumentParser
from uuid import UUID

from api.cli.argument_types import event_id, position, positive, utf8
from api.cli.arguments import OPERATE, Command
from api.cli.output_arguments import add_consent, add_form


def _channel(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    test = actions.add_parser("test", help="ask a channel's publishing points for their state; exit code 1 if one reports none")
    test.add_argument("channel", metavar="NAME_OR_ID", type=utf8)
    test.add_argument(
        "--event",
        metavar="ID",
        type=UUID,
        help="use the hosts that are provisioned for this Event in addresses with placeholders",
    )
    add_form(test)


def _sessions(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="list the sessions under way, then the last ones that ended")
    add_form(listed)
    stop = actions.add_parser("stop", help="take an Event off the air; its state stays as it is")
    stop.add_argument("target", metavar="CHANNEL_OR_EVENT", type=utf8, help="the id of the Event, or the id or name of its channel")
    add_consent(stop)


def _provision(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser(
        "list", help="list the infrastructure with work under way, the longest waiting first, then the latest without"
    )
    add_form(listed)
    show = actions.add_parser("show", help="show the infrastructure of an Event with its resources")
    show.add_argument("event", metavar="EVENT", type=event_id)
    add_form(show)
    plan = actions.add_parser("plan", help="show what provisioning now would create, change and remove; nothing is changed")
    plan.add_argument("event", metavar="EVENT", type=event_id)
    plan.add_argument("--allow-updates", action="store_true", default=None, help="plan as if existing resources could be changed")
    add_form(plan)
    cancel = actions.add_parser("cancel", help="terminate the infrastructure, or interrupt its provisioning")
    cancel.add_argument("event", metavar="EVENT", type=event_id)
    add_form(cancel)
    add_consent(cancel)


def _origin(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--token",
        type=utf8,
        metavar="NAME",
        help="print a token with which an encoder may write to and read this publishing point, and exit",
    )
    parser.add_argument("--read", action="store_true", help="with --token: a token that may only read, for players")
    parser.add_argument("--hours", type=positive, default=12, metavar="N", help="how long the token is valid (default: 12 hours)")
    parser.add_argument(
        "--revoke", type=utf8, metavar="NAME", help="revoke all tokens that were issued for this publishing point so far, and exit"
    )
    add_consent(parser)
    parser.add_argument(
        "--session", type=position, metavar="N", help="the number of the token's session (default: the last one plus 1)"
    )


CHANNEL = Command(
    "test a channel before an Event needs it",
    "Shows what the encoders of a channel would do for an Event, and asks each of its publishing points once for its state, as the "
    "worker `prober` does: with the key from the vault, and only at addresses that are allowed. Nothing is started or changed.",
    "medialedger channel test 'Main channel'\n  medialedger channel test 3fa85f64-5717-4562-b3fc-2c963f66afa6 --json",
    _channel,
    group=OPERATE,
)
SESSIONS = Command(
    "list the sessions of encoders, stop a session",
    "Lists the sessions: processes that run until they are stopped, such as the encoders of Events on the air. `stop` takes an "
    "Event "
    "off the air and leaves its state; its next change to the state 1 or 2 starts it again.",
    "medialedger sessions list\n  medialedger sessions list --json\n  medialedger sessions stop 'Main channel'",
    _sessions,
    group=OPERATE,
)
PROVISION = Command(
    "list, show, plan and cancel the infrastructure of Events",
    "Shows the infrastructure of Events: its state and key, and the work that waits for its worker. `plan` shows what "
    "provisioning an Event now would do: for a template it is a plan of Terraform, so call it where the role `provisioning` "
    "runs. `cancel` is DELETE /api/provision/{eventId}: the worker interrupts what is under way, and terminates.",
    "medialedger provision list\n  medialedger provision show 3fa85f64-5717-4562-b3fc-2c963f66afa6 --json\n"
    "  medialedger provision plan 3fa85f64-5717-4562-b3fc-2c963f66afa6\n"
    "  medialedger provision cancel 3fa85f64-5717-4562-b3fc-2c963f66afa6",
    _provision,
    group=OPERATE,
    remote=("show", "cancel"),
)
ORIGIN = Command(
    "receive and play live streams, without a database",
    "Runs only the built-in origin, for laptops and tests: `medialedger up` has one too. It listens at MEDIALEDGER_HOST and "
    "MEDIALEDGER_PORT, keeps recordings in MEDIALEDGER_ORIGIN_ROOT, and needs the master key of the installation whose encoders "
    "write to it.",
    "medialedger origin\n  medialedger origin --token news --hours 3\n  medialedger origin --token news --read\n"
    "  medialedger origin --revoke news --yes",
    _origin,
    serves=True,
    about_machine=True,
)

"""The arguments and help texts of the commands about Events and webhooks: `events` and `webhooks`."""

from __future__ import annotations

from argparse import ArgumentParser

from api.cli.argument_types import event_id, moment, moment_or_version, positive, utf8
from api.cli.arguments import OPERATE, Command
from api.cli.output_arguments import add_form


def _events(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="list Events by their scheduled start")
    listed.add_argument(
        "--search", type=utf8, metavar="TEXT", help="only Events with this text in their title, description or an id"
    )
    listed.add_argument(
        "--state", type=utf8, metavar="STATE", help="only Events in this state, such as LIVE_PUBLISHED; separate several by commas"
    )
    listed.add_argument("--room", type=utf8, metavar="NAME", help="only Events in rooms with this name")
    listed.add_argument("--tag", type=utf8, metavar="NAME", help="only Events with this tag")
    listed.add_argument(
        "--from", dest="starts_from", type=moment, metavar="TIME", help="only Events that are scheduled then or later"
    )
    listed.add_argument(
        "--to", dest="starts_to", type=moment, metavar="TIME", help="only Events that are scheduled then or earlier"
    )
    listed.add_argument("--deleted", action="store_true", help="only deleted Events")
    listed.add_argument("--items", type=positive, default=20, metavar="N", help="the maximum number of rows (default: %(default)s)")
    show = actions.add_parser("show", help="show one Event as it is or as it was")
    history = actions.add_parser("history", help="list every change of an Event with its author and time")
    diff = actions.add_parser("diff", help="show what differs between two moments of an Event")
    for action_parser in (show, history, diff):
        action_parser.add_argument("event", metavar="EVENT", type=utf8, help="the Event's id or reference id")
    show.add_argument("--at", type=moment_or_version, metavar="TIME", help="show it at this time, or at this version: v3")
    diff.add_argument("since", type=moment_or_version, metavar="FROM", help="a time, or a version: v1")
    diff.add_argument("until", type=moment_or_version, metavar="TO", nargs="?", help="a time or a version, as FROM (default: now)")
    for action_parser in (listed, show, history, diff):
        add_form(action_parser)


def _webhooks(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="list the webhooks for all Events, or those of one Event")
    listed.add_argument("--event", type=event_id, metavar="ID", help="only webhooks of this Event")
    health = actions.add_parser(
        "health", help="show the state of each webhook: its last deliveries, the oldest waiting one, its fault"
    )
    deliveries = actions.add_parser("deliveries", help="list the deliveries of all webhooks or of one, the newest first")
    states = deliveries.add_mutually_exclusive_group()
    states.add_argument("--state", choices=("pending", "delivered", "failed"))
    states.add_argument("--failed", action="store_true", help="the same as --state failed")
    deliveries.add_argument("--event", type=event_id, metavar="ID", help="only deliveries about this Event")
    deliveries.add_argument(
        "--items", type=positive, default=20, metavar="N", help="the maximum number of rows (default: %(default)s)"
    )
    resend = actions.add_parser("resend", help="send a finished delivery again")
    test = actions.add_parser("test", help="send a sample notification; exit code 1 if it is not accepted")
    whose = "the webhook's id, or its beginning (default: all webhooks)"
    deliveries.add_argument("webhook", metavar="WEBHOOK", type=utf8, nargs="?", help=whose)
    for action_parser in (resend, test):
        action_parser.add_argument("webhook", metavar="WEBHOOK", type=utf8, help="its id, or the beginning of it")
    resend.add_argument("delivery", metavar="DELIVERY", type=utf8, help="its id, or the beginning of it")
    for action_parser in (listed, health, deliveries, test):
        add_form(action_parser)


EVENTS = Command(
    "list Events, show one as it is or as it was",
    "Lists and shows Events, their history, and what differs between two moments. A time without an offset is UTC.",
    "medialedger events list --state LIVE_PUBLISHED,PRE_LIVE\n  medialedger events list --search final --from 2031-05-01\n"
    "  medialedger events show 3fa85f64-5717-4562-b3fc-2c963f66afa6 --at 2031-05-01T18:30\n"
    "  medialedger events history match-17\n  medialedger events diff match-17 v1 v3",
    _events,
    group=OPERATE,
    by_rest=("list", "show", "history", "diff"),
)
WEBHOOKS = Command(
    "list webhooks and their deliveries, send a delivery again",
    "Lists webhooks and what was sent to them, sends a delivery again, and tries a webhook with a sample notification.",
    "medialedger webhooks list\n  medialedger webhooks health\n  medialedger webhooks deliveries --failed\n"
    "  medialedger webhooks resend 3fa85f64 9b1d\n  medialedger webhooks test 3fa85f64",
    _webhooks,
    group=OPERATE,
    by_rest=("list", "health", "deliveries", "resend", "test"),
)

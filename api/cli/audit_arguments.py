"""The arguments and help texts of the commands about the log: `audit` and `log`."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from api.cli.argument_types import moment, moment_or_version, position, positive, utf8
from api.cli.arguments import AUDIT_WORK, Command
from api.cli.output_arguments import add_form, add_output_file


def _audit(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="show the history of one aggregate, or the newest entries of the log")
    show.add_argument("aggregate", metavar="AGGREGATE", nargs="?", help="the kind of aggregate, such as event or room")
    show.add_argument("id", metavar="ID", nargs="?")
    show.add_argument(
        "--limit", type=positive, default=50, metavar="N", help="the maximum number of entries (default: %(default)s)"
    )
    add_form(show)
    _audit_reading(actions)
    verify = actions.add_parser("verify", help="recompute the log's hash chain; exit code 3 if it is broken")
    what = verify.add_mutually_exclusive_group()
    what.add_argument("--since-seal", action="store_true", help="only the events after the last sealed partition")
    what.add_argument(
        "--since",
        type=_position_or_file,
        metavar="POSITION|FILE",
        help="only the events after this position, or after the checkpoint in this file, which must be of this log",
    )
    what.add_argument("--file", type=Path, metavar="PATH", help="the file of an exported partition; no database is needed")
    verify.add_argument(
        "--chain-hash", type=utf8, metavar="HEX", help="with --file: fail unless the partition's seal has this chain hash"
    )
    replay = actions.add_parser(
        "replay", help="replay stored events with the eventsourcing library and compare with the views; exit code 3 if they differ"
    )
    replay.add_argument("--aggregate", type=utf8, metavar="KIND", required=True, help="such as event or room")
    which = replay.add_mutually_exclusive_group(required=True)
    which.add_argument("--id", type=utf8, metavar="ID", help="one aggregate")
    which.add_argument("--all", action="store_true", help="all aggregates of the kind")
    _audit_proofs(actions)


def _audit_reading(actions: Any) -> None:
    events = actions.add_parser("events", help="list the entries of the whole log that match all filters, the newest last")
    events.add_argument("--aggregate", type=utf8, metavar="KIND", help="such as event or room")
    events.add_argument("--id", type=utf8, metavar="ID", help="only entries of this aggregate")
    events.add_argument("--actor", type=utf8, metavar="NAME", help="the author: a client, an end user, shell:<user> or system")
    events.add_argument("--type", type=utf8, metavar="TYPE", help="the type of event, such as event.state_changed")
    events.add_argument("--transaction", type=utf8, metavar="ID", help="only entries of this request")
    events.add_argument("--from", dest="recorded_from", type=moment, metavar="TIME", help="recorded then or later")
    events.add_argument("--to", dest="recorded_to", type=moment, metavar="TIME", help="recorded then or earlier")
    events.add_argument("--after", type=position, metavar="POSITION", help="only entries after this position, the oldest first")
    events.add_argument(
        "--limit", type=positive, default=50, metavar="N", help="the maximum number of entries (default: %(default)s)"
    )
    events.add_argument("--follow", action="store_true", help="continue with new entries until Ctrl-C")
    diff = actions.add_parser("diff", help="show what differs between two moments of one aggregate, and who changed it")
    diff.add_argument("aggregate", metavar="AGGREGATE", type=utf8, help="the kind of aggregate, such as event or room")
    diff.add_argument("id", metavar="ID", type=utf8)
    diff.add_argument("since", type=moment_or_version, metavar="FROM", help="a time, or a version: v1")
    diff.add_argument("until", type=moment_or_version, metavar="TO", nargs="?", help="a time or a version, as FROM (default: now)")
    for action_parser in (events, diff):
        add_form(action_parser)


def _position_or_file(text: str) -> int | Path:
    return positive(text) if text.lstrip("+-").isdigit() else Path(utf8(text))


def _audit_proofs(actions: Any) -> None:
    checkpoint = actions.add_parser("checkpoint", help="print the last signed checkpoint of the log and its anchors")
    checkpoint.add_argument(
        "--now", action="store_true", help="sign a new checkpoint first, if the log has new events; needs the master key"
    )
    key = actions.add_parser("key", help="print the public key that checkpoints are signed with")
    key.add_argument("--all", action="store_true", help="include the earlier keys, the oldest first")
    actions.add_parser("rotate-key", help="replace the signing key by a checkpoint that both keys sign; needs the master key")
    export = actions.add_parser("export", help="write the log, or one stream with its proofs, for `verify.py`")
    add_output_file(export)
    export.add_argument(
        "--after", type=position, default=0, metavar="POSITION", help="only events after this position (default: all)"
    )
    export.add_argument("--through", type=positive, metavar="POSITION", help="only events up to this position")
    export.add_argument("--from", dest="recorded_from", type=moment, metavar="TIME", help="only events recorded then or later")
    export.add_argument("--to", dest="recorded_to", type=moment, metavar="TIME", help="only events recorded then or earlier")
    export.add_argument(
        "--aggregate", type=utf8, metavar="KIND", help="only this kind; such an export cannot be verified without --id"
    )
    export.add_argument("--id", type=utf8, metavar="ID", help="with --aggregate: all events of one aggregate, with their proofs")
    actions.add_parser("verifier", help="print verify.py, which verifies exports without the product")


def _log(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_form(actions.add_parser("partitions", help="list every partition with its positions, times, sizes and seal"))
    actions.add_parser("seal", help="verify and seal the full partitions that are not sealed yet")
    export = actions.add_parser("export", help="write a sealed partition to a file, which can be verified without a database")
    export.add_argument("position", metavar="POSITION", type=positive, help="the first position of the partition")
    export.add_argument("--output", type=Path, required=True, metavar="PATH", help="the file, which must not exist yet")


AUDIT = Command(
    "read and check the log",
    "Shows the log, checks its hash chain, which reveals any change, and exports it with proofs for auditors.",
    "medialedger audit show room 1b671a64-40d5-491e-99b0-da01ff1f3341\n  medialedger audit show --limit 10\n"
    "  medialedger audit events --actor desk --from 2031-05-01 --json\n"
    "  medialedger audit events --type event.state_changed --follow\n"
    "  medialedger audit diff event 3fa85f64-5717-4562-b3fc-2c963f66afa6 v1 v3\n"
    "  medialedger audit verify\n  medialedger audit verify --since checkpoint.txt\n  medialedger audit verify --file events-1.gz\n"
    "  medialedger audit replay --aggregate event --id 3fa85f64-5717-4562-b3fc-2c963f66afa6\n"
    "  medialedger audit export --output log.ndjson\n  medialedger audit verifier",
    _audit,
    group=AUDIT_WORK,
    by_rest=("show", "events", "diff"),
    remote=("verify", "verifier", "export", "checkpoint"),
)
LOG = Command(
    "list, seal and export the partitions of the log",
    "The log is partitioned by position. A full partition can be sealed, which records its content, and then exported.",
    "medialedger log partitions\n  medialedger log seal\n  medialedger log export 1 --output events-1.gz",
    _log,
    group=AUDIT_WORK,
)

"""The arguments and help texts of the commands about the log: `audit` and `log`."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from api.cli.argument_types import moment, position, positive, utf8
from api.cli.arguments import Command


def _audit(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="the history of one aggregate, or the newest entries of the log")
    show.add_argument("aggregate", metavar="AGGREGATE", nargs="?", help="its kind, such as event or room")
    show.add_argument("id", metavar="ID", nargs="?")
    show.add_argument("--limit", type=positive, default=50, metavar="N", help="how many entries at most (default: %(default)s)")
    verify = actions.add_parser("verify", help="recompute the log's hash chain; exit code 3 when it is broken")
    what = verify.add_mutually_exclusive_group()
    what.add_argument("--since-seal", action="store_true", help="only what comes after the last sealed partition")
    what.add_argument(
        "--since",
        type=_position_or_file,
        metavar="POSITION|FILE",
        help="only what comes after this position, or after the checkpoint in this file, which must be of this log",
    )
    what.add_argument("--file", type=Path, metavar="PATH", help="the file of an exported partition; no database is needed")
    verify.add_argument(
        "--chain-hash", type=utf8, metavar="HEX", help="with --file: fail unless the partition's seal has this chain hash"
    )
    _audit_proofs(actions)


def _position_or_file(text: str) -> int | Path:
    return positive(text) if text.lstrip("+-").isdigit() else Path(utf8(text))


def _audit_proofs(actions: Any) -> None:
    checkpoint = actions.add_parser("checkpoint", help="the last signed checkpoint of the log, and what it is anchored by")
    checkpoint.add_argument("--now", action="store_true", help="sign one first, if anything is new; needs the master key")
    key = actions.add_parser("key", help="the public key that checkpoints are signed with")
    key.add_argument("--all", action="store_true", help="the keys before it too, the oldest first")
    actions.add_parser("rotate-key", help="hand over to a new key by a checkpoint that both sign; needs the master key")
    export = actions.add_parser("export", help="write the log, or one stream with its proofs, for `verify.py`")
    export.add_argument("--output", type=Path, metavar="PATH", help="the file, which must not exist yet (default: standard output)")
    export.add_argument("--after", type=position, default=0, metavar="POSITION", help="only what comes after (default: all)")
    export.add_argument("--through", type=positive, metavar="POSITION", help="only what comes up to this position")
    export.add_argument("--from", dest="recorded_from", type=moment, metavar="TIME", help="only what was recorded then or later")
    export.add_argument("--to", dest="recorded_to", type=moment, metavar="TIME", help="only what was recorded then or earlier")
    export.add_argument("--aggregate", type=utf8, metavar="KIND", help="only this kind; without --id that cannot be verified")
    export.add_argument("--id", type=utf8, metavar="ID", help="with --aggregate: all events of one, with their proofs")
    actions.add_parser("verifier", help="print verify.py, which verifies exports without the product")


def _log(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("partitions", help="every partition: its positions, times, sizes, and its seal")
    actions.add_parser("seal", help="verify the full partitions that are not sealed, and seal them")
    export = actions.add_parser("export", help="write a sealed partition to a file, which can be verified without a database")
    export.add_argument("position", metavar="POSITION", type=positive, help="the first position of the partition")
    export.add_argument("--output", type=Path, required=True, metavar="PATH", help="the file, which must not exist yet")


AUDIT = Command(
    "read and check the log",
    "Shows the log, checks its hash chain, which reveals any change, and exports it with proofs for people outside.",
    "medialedger audit show room 1b671a64-40d5-491e-99b0-da01ff1f3341\n  medialedger audit show --limit 10\n"
    "  medialedger audit verify\n  medialedger audit verify --since checkpoint.txt\n  medialedger audit verify --file events-1.gz\n"
    "  medialedger audit export --output log.ndjson\n  medialedger audit verifier",
    _audit,
)
LOG = Command(
    "list, seal and export the partitions of the log",
    "The log is in partitions by position. A full one can be sealed, which records what it holds, and a sealed one exported.",
    "medialedger log partitions\n  medialedger log seal\n  medialedger log export 1 --output events-1.gz",
    _log,
)

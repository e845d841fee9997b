"""Arguments that many commands share: the output format, the destination of a command, and the consent to a final action."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from api.cli.argument_types import utf8

FORMS = ("table", "wide", "json", "ndjson")
"""The formats of api/cli/output.py, which commands import only when they print."""


def add_form(parser: ArgumentParser) -> None:
    parser.add_argument(
        *("-o", "--format"),
        dest="form",
        choices=FORMS,
        default="table",
        metavar="FORM",
        help=f"the output format: {', '.join(FORMS)} (default: %(default)s). wide has more columns and absolute times, "
        "ndjson has one document per line",
    )
    parser.add_argument("--json", dest="form", action="store_const", const="json", help="the same as -o json")


def add_target(parser: ArgumentParser) -> None:
    """Add `--url` and the related options. They are None or False unless given."""
    where = parser.add_argument_group("destination of the command")
    place = where.add_mutually_exclusive_group()
    place.add_argument("--url", type=utf8, metavar="URL", default=None, help="use the API at this address (MEDIALEDGER_URL)")
    place.add_argument("--context", type=utf8, metavar="NAME", default=None, help="use this context (MEDIALEDGER_CONTEXT)")
    place.add_argument("--local", action="store_true", help="use the product of this home, even if there is a default context")
    where.add_argument(
        "--key-file",
        type=utf8,
        metavar="FILE",
        default=None,
        help="file with the API key (-: standard input; MEDIALEDGER_API_KEY)",
    )


def add_local(parser: ArgumentParser) -> None:
    """Add `--local` to a command that works on the database."""
    parser.add_argument("--local", action="store_true", help="use the database of this home, even if there is a default context")


def add_consent(parser: ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")


def add_output_file(parser: ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, metavar="PATH", help="the file, which must not exist yet (default: standard output)")

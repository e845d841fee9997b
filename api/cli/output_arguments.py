"""Arguments that many commands have: the form of what is printed, where a command goes, and consent to what cannot be undone."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from api.cli.argument_types import utf8

FORMS = ("table", "wide", "json", "ndjson")
"""Those of api/cli/output.py, which commands import when they print."""


def add_form(parser: ArgumentParser) -> None:
    parser.add_argument(
        *("-o", "--format"),
        dest="form",
        choices=FORMS,
        default="table",
        metavar="FORM",
        help=f"how it is printed: {', '.join(FORMS)} (default: %(default)s). wide has more columns and absolute times, "
        "ndjson one document a line",
    )
    parser.add_argument("--json", dest="form", action="store_const", const="json", help="the same as -o json")


def add_target(parser: ArgumentParser) -> None:
    """`--url` and what belongs to it; nothing is set where nothing is given."""
    where = parser.add_argument_group("where it goes")
    place = where.add_mutually_exclusive_group()
    place.add_argument("--url", type=utf8, metavar="URL", default=None, help="to the API at this address (MEDIALEDGER_URL)")
    place.add_argument("--context", type=utf8, metavar="NAME", default=None, help="to this context (MEDIALEDGER_CONTEXT)")
    place.add_argument("--local", action="store_true", help="to the product of this home, also while a context is in use")
    where.add_argument(
        "--key-file",
        type=utf8,
        metavar="FILE",
        default=None,
        help="file with the API key (- : standard input; MEDIALEDGER_API_KEY)",
    )


def add_local(parser: ArgumentParser) -> None:
    """For a command that works on the database."""
    parser.add_argument("--local", action="store_true", help="on the database of this home, also while a context is in use")


def add_consent(parser: ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do it without a question")


def add_output_file(parser: ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, metavar="PATH", help="the file, which must not exist yet (default: standard output)")

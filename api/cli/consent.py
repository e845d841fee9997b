"""The question before a command that cannot be undone."""

from __future__ import annotations

import sys
from argparse import Namespace

from api.cli.printable import printable
from api.wiring.startup import StartError


def confirm(args: Namespace, what: str) -> None:
    """On a terminal, unless `--yes` is given. A script is not asked. Raises `StartError` for a no."""
    if args.yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    print(f"{printable(what)}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise StartError("nothing was done")

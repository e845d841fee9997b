"""The question before a command that cannot be undone."""

from __future__ import annotations

import sys
from argparse import Namespace

from api.cli.printable import printable
from api.wiring.startup import StartError


def confirm(args: Namespace, what: str) -> None:
    """Ask on a terminal, unless `--yes` is given. Raises `StartError` for a no, and where there is nobody to ask."""
    if args.yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise StartError(f"nothing was done: to {printable(what)}, give --yes, since there is no terminal on which to ask")
    print(f"{printable(what)}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise StartError("nothing was done")

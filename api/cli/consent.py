"""The confirmation of a command that cannot be undone."""

from __future__ import annotations

import sys
from argparse import Namespace

from api.cli.printable import printable
from api.wiring.startup import StartError


def confirm(args: Namespace, what: str) -> None:
    """Ask for confirmation on the terminal, unless `--yes` is given. Raise `StartError` if the answer is no or there is no
    terminal."""
    if args.yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise StartError(f"nothing was done: give --yes to {printable(what)}, since there is no terminal to ask on")
    print(f"{printable(what)}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise StartError("nothing was done")

"""How far a long command has come: one line that is written over, for people only."""

from __future__ import annotations

import sys


def tell_events(events: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{events} events", end="", file=sys.stderr, flush=True)

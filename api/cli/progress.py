"""The progress of a long command: one line that is overwritten, on a terminal only."""

from __future__ import annotations

import sys


def show_event_count(events: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{events} events", end="", file=sys.stderr, flush=True)

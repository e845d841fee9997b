"""The progress of a long command: one line, overwritten in place, on a terminal only."""

from __future__ import annotations

import sys

from projections.kernel.sizes import shown


def show_event_count(events: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{events} events", end="", file=sys.stderr, flush=True)


def show_bytes(done: str, size: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{shown(size)} {done}   ", end="", file=sys.stderr, flush=True)


def end_line() -> None:
    if sys.stderr.isatty():
        print(file=sys.stderr)

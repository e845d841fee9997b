"""The screen for the progress of jobs: bars on a terminal, otherwise lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from api.cli.job_progress import Lines, Screen


@contextmanager
def screen() -> Iterator[Screen]:
    if not sys.stdout.isatty():
        yield Lines()
        return
    from api.cli.progress_bars import Bars  # imports rich

    with Bars(Lines()) as bars:
        yield bars

"""Follows jobs over the REST API, and waits while it is away."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from api.cli.job_progress import MAX_SHOWN, Job, Task, Watched
from api.cli.polling import INTERVAL
from api.cli.progress_screen import screen
from api.cli.rest_api import ApiError, RestApi

_AWAY = (0, 429, 502, 503, 504)
"""Statuses of answers that may be different in a moment; 0: there was none."""
T = TypeVar("T")


def watch(api: RestApi, ids: Sequence[int], *, client: str | None) -> None:
    """Until these have ended; without any, all that run, until it is interrupted."""
    watched = Watched(ids)
    with screen() as shown:
        while True:
            jobs, tasks = available(lambda: _read(api, watched, client=client))
            shown.show(jobs, tasks)
            if not watched.goes_on(jobs):
                return
            time.sleep(INTERVAL)


def available(ask: Callable[[], T]) -> T:
    """What `ask` gives, once it can be had."""
    printed = False
    while True:
        try:
            return ask()
        except ApiError as fault:
            if fault.status not in _AWAY:
                raise
            if not printed:
                print(f"medialedger: {fault}; waiting for it", file=sys.stderr)
            printed = True
            time.sleep(INTERVAL)


def _read(api: RestApi, watched: Watched, *, client: str | None) -> tuple[Sequence[Job], Sequence[Task]]:
    running: Sequence[Job] = ()
    if not watched.until_ended:
        running = api.documents("/engine/jobs", state="started", items=MAX_SHOWN, client=client, asc=1)
    wanted = watched.ids(running)
    if not wanted:
        return (), ()
    listed = ",".join(map(str, wanted))
    jobs = api.documents("/engine/jobs", job_ids=listed, items=len(wanted), asc=1)
    return jobs, api.documents("/engine/tasks", job_ids=listed)

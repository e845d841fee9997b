"""Follows jobs over the REST API, and waits while it is unavailable."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from api.cli.job_progress import MAX_SHOWN, Job, JobSelection, Task
from api.cli.polling import INTERVAL
from api.cli.progress_screen import screen
from api.cli.rest_api import ApiError, RestApi

_AWAY = (0, 429, 502, 503, 504)
"""Statuses that may be different a moment later; 0 means that there was no answer."""
T = TypeVar("T")


def watch(api: RestApi, ids: Sequence[int], *, client: str | None) -> None:
    """Show the progress of these jobs until they have ended; without ids, that of all running jobs until the command is
    interrupted."""
    selection = JobSelection(ids)
    with screen() as shown:
        while True:
            jobs, tasks = available(lambda: _read(api, selection, client=client))
            shown.show(jobs, tasks)
            if not selection.continues(jobs):
                return
            time.sleep(INTERVAL)


def available(ask: Callable[[], T]) -> T:
    """Return the result of `ask`, which is repeated while the API is unavailable."""
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


def _read(api: RestApi, selection: JobSelection, *, client: str | None) -> tuple[Sequence[Job], Sequence[Task]]:
    running: Sequence[Job] = ()
    if not selection.until_ended:
        running = api.documents("/engine/jobs", state="started", items=MAX_SHOWN, client=client, asc=1)
    ids = selection.ids(running)
    if not ids:
        return (), ()
    listed = ",".join(map(str, ids))
    jobs = api.documents("/engine/jobs", job_ids=listed, items=len(ids), asc=1)
    return jobs, api.documents("/engine/tasks", job_ids=listed)

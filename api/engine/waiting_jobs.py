"""The ceiling of jobs that wait: docs/reference/api/job-engine.md#settings.

They are counted at most once a second for each client, by one request at a time: those beside it go by the last count and what was
accepted since. So a few more than the ceiling may be accepted at the same moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from api.http.errors import TooManyRequests
from projections.job.counts import JobCounts
from projections.job.settings import EngineSettingsQueries

_FRESH: Final = 1.0
_LATER: Final = 10
_KEPT: Final = 10_000


class _Counted(NamedTuple):
    waiting: int
    most: int
    at: float


class WaitingJobs:
    """Refuses a further job of a client that has as many as it may."""

    def __init__(
        self, counts: JobCounts, settings: EngineSettingsQueries, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._counts = counts
        self._settings = settings
        self._monotonic = monotonic
        self._of: dict[str, _Counted] = {}

    async def admit(self, client: str) -> None:
        """Raises `TooManyRequests`."""
        now = self._monotonic()
        found = self._of.get(client)
        if found is None or now - found.at >= _FRESH:
            if found is not None:
                self._of[client] = found._replace(at=now)
            found = await self._count(client, now)
        if found.waiting >= found.most:
            detail = f"{found.most} jobs of the client wait, which is its limit"
            raise TooManyRequests(detail, retry_after=_LATER)
        self._of[client] = found._replace(waiting=found.waiting + 1)

    async def _count(self, client: str, now: float) -> _Counted:
        most = (await self._settings.of([client]))[client].max_waiting_jobs
        counted = _Counted(await self._counts.waiting(client, most=most), most, now)
        if len(self._of) >= _KEPT:
            self._of.clear()
        self._of[client] = counted
        return counted

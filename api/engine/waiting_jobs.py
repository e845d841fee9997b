"""The limit on waiting jobs: docs/reference/api/job-engine.md#settings.

They are counted at most once per second for each client, by one request at a time. Concurrent requests use the last count and the
number accepted since, so slightly more jobs than the limit may be accepted at the same moment.
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
_MOST_CLIENTS: Final = 10_000


class _Counted(NamedTuple):
    waiting: int
    most: int
    at: float


class WaitingJobs:
    """Refuses further jobs of a client that has reached its limit of waiting jobs."""

    def __init__(
        self, counts: JobCounts, settings: EngineSettingsQueries, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._counts = counts
        self._settings = settings
        self._monotonic = monotonic
        self._of: dict[str, _Counted] = {}

    async def admit(self, client: str) -> None:
        """Count a job of the client. Raise `TooManyRequests` at the limit."""
        now = self._monotonic()
        counted = self._of.get(client)
        if counted is None or now - counted.at >= _FRESH:
            if counted is not None:
                self._of[client] = counted._replace(at=now)
            counted = await self._count(client, now)
        if counted.waiting >= counted.most:
            detail = f"{counted.most} jobs of the client are waiting, which is its limit"
            raise TooManyRequests(detail, retry_after=_LATER)
        self._of[client] = counted._replace(waiting=counted.waiting + 1)

    async def _count(self, client: str, now: float) -> _Counted:
        most = (await self._settings.of([client]))[client].max_waiting_jobs
        counted = _Counted(await self._counts.waiting(client, most=most), most, now)
        if len(self._of) >= _MOST_CLIENTS:
            self._of.clear()
        self._of[client] = counted
        return counted

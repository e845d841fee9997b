"""Queries of the timekeeper: Events that the schedule is to start or to stop.

The database's clock says what is due, so that all timekeepers agree.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple
from uuid import UUID

from domain.media_event.commands import EndEventOnSchedule, StartEventOnSchedule
from projections.kernel.arrays import uuids
from projections.kernel.database import Pool
from projections.media_event.view import AUTO_START_WINDOW

AT_ONCE: Final = 200
"""At most so many Events of each kind are read in one round; the next round follows at once."""
MOST_COUNTED: Final = 10_000
START: Final = "start"
STOP: Final = "stop"

_NOW = "coalesce(%(at)s::timestamptz, now())"
_START_DUE = f"auto_start_at IS NOT NULL AND {AUTO_START_WINDOW} @> {_NOW}"
_STOP_DUE = f"auto_end_at <= {_NOW}"
_DUE = f"""
(SELECT id, auto_start_at AS due, scheduled_end, extract(epoch FROM {_NOW} - auto_start_at)::float8, true FROM (
    SELECT id, auto_start_at, scheduled_end FROM event_view WHERE {_START_DUE} AND id <> ALL(%(resting)s) OFFSET 0
) AS waiting ORDER BY auto_start_at LIMIT {AT_ONCE})
UNION ALL
(SELECT id, auto_end_at, scheduled_end, extract(epoch FROM {_NOW} - auto_end_at)::float8, false FROM event_view
WHERE {_STOP_DUE} AND id <> ALL(%(resting)s) ORDER BY auto_end_at LIMIT {AT_ONCE})
"""
_NEXT = f"""
SELECT extract(epoch FROM min(instant) - coalesce(%(at)s::timestamptz, clock_timestamp()))::float8 FROM (
    (SELECT auto_start_at AS instant FROM event_view WHERE auto_start_at > {_NOW} ORDER BY auto_start_at LIMIT 1)
    UNION ALL
    (SELECT auto_end_at FROM event_view WHERE auto_end_at > {_NOW} ORDER BY auto_end_at LIMIT 1)
) AS following
"""
_COUNTS = f"""
SELECT (SELECT count(*) FROM (SELECT FROM event_view WHERE {_START_DUE} LIMIT {MOST_COUNTED}) AS waiting),
    (SELECT count(*) FROM (SELECT FROM event_view WHERE {_STOP_DUE} LIMIT {MOST_COUNTED}) AS live)
"""


class DueEvent(NamedTuple):
    """An Event whose time has come `late` seconds ago, with the command that says so."""

    key: UUID
    command: StartEventOnSchedule | EndEventOnSchedule
    late: float

    @property
    def action(self) -> str:
        return START if isinstance(self.command, StartEventOnSchedule) else STOP


class DueEvents:
    """Reads the times of Events. They are compared with `at`; None: with the clock of the database."""

    def __init__(self, database: Pool) -> None:
        self._database = database

    async def due(self, *, resting: Collection[UUID] = (), at: datetime | None = None) -> list[DueEvent]:
        """Events to start and to stop, the longest due first, without those that are `resting`."""
        found = await self._database.rows(_DUE, {"resting": uuids(list(resting)), "at": at})
        return [DueEvent(key, _command(key, due, end, starts=starts), late) for key, due, end, late, starts in found]

    async def next_in(self, *, at: datetime | None = None) -> float | None:
        """Seconds until the next Event is due that is not due yet; None without one."""
        ((seconds,),) = await self._database.rows(_NEXT, {"at": at})
        return None if seconds is None else float(seconds)

    async def counts(self, *, at: datetime | None = None) -> Mapping[str, int]:
        """How many Events are due to `start` and to `stop`, each up to `MOST_COUNTED`."""
        ((waiting, live),) = await self._database.rows(_COUNTS, {"at": at})
        return {START: waiting, STOP: live}


def _command(
    key: UUID, due: datetime, scheduled_end: datetime | None, *, starts: bool
) -> StartEventOnSchedule | EndEventOnSchedule:
    """Times in UTC: in the session's time zone, times of the hour that a change of clocks repeats would compare as different."""
    due, end = due.astimezone(UTC), scheduled_end and scheduled_end.astimezone(UTC)
    return StartEventOnSchedule(key, due, end) if starts else EndEventOnSchedule(key, due)

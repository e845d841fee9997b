"""Queries of the timekeeper: Events to start, stop, publish or withdraw by the schedule, recorded streams to show or hide, Events
whose channel is free again, infrastructure to provision or terminate, and films of playlists to compose.

The database's clock decides what is due, so that all timekeepers agree.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple
from uuid import UUID

from projections.event.view import AUTO_INSTANT_VOD_WINDOW, AUTO_PROVISION_WINDOW, AUTO_PUBLISH_WINDOW, AUTO_START_WINDOW
from projections.kernel.database.arrays import texts
from projections.kernel.database.database import Pool

AT_ONCE: Final = 200
"""The most Events of each action that are read in one round; the next round follows at once."""
MOST_COUNTED: Final = 10_000
START: Final = "start"
TAKE: Final = "take"
"""An Event was refused its channel, which is free now."""
STOP: Final = "stop"
PUBLISH: Final = "publish"
WITHDRAW: Final = "withdraw"
SHOW_RECORDING: Final = "show_recording"
HIDE_RECORDING: Final = "hide_recording"
PROVISION: Final = "provision"
TERMINATE: Final = "terminate"
COMPOSE: Final = "compose"

_NOW = "coalesce(%(at)s::timestamptz, now())"
_TIMES: Final = {
    START: "auto_start_at",
    STOP: "auto_end_at",
    PUBLISH: "auto_publish_at",
    WITHDRAW: "auto_withdraw_at",
    SHOW_RECORDING: "auto_instant_vod_at",
    HIDE_RECORDING: "auto_instant_vod_end_at",
    PROVISION: "auto_provision_at",
    TERMINATE: "auto_terminate_at",
}
_WINDOWS: Final = {
    START: AUTO_START_WINDOW,
    PUBLISH: AUTO_PUBLISH_WINDOW,
    SHOW_RECORDING: AUTO_INSTANT_VOD_WINDOW,
    PROVISION: AUTO_PROVISION_WINDOW,
}
"""The windows of the actions that can be too late."""
_ENDS: Final = {PUBLISH: "auto_publish_until", SHOW_RECORDING: "auto_instant_vod_until"}
"""The ends that the actions must find unchanged; by default the scheduled end."""
_NOT_BEFORE: Final = dict.fromkeys(
    (PUBLISH, WITHDRAW, SHOW_RECORDING, HIDE_RECORDING), "coalesce((SELECT since FROM availability), '-infinity')"
)
"""The times from which the schedule does the actions at all."""


def _is_due(action: str) -> str:
    time, window = _TIMES[action], _WINDOWS.get(action)
    due = f"{time} <= {_NOW}" if window is None else f"{time} IS NOT NULL AND {window} @> {_NOW}"
    return f"{due} AND {time} >= {_NOT_BEFORE[action]}" if action in _NOT_BEFORE else due


def _due(action: str) -> str:
    """Return the query for the Events of an action. Events with a window are found by the index of windows, and sorted
    afterwards."""
    time, attempt = _TIMES[action], f"concat_ws(' ', '{action}', id, version)"
    end = _ENDS.get(action, "scheduled_end")
    query = f"SELECT id, {time}, {end} AS over, {attempt} AS attempt FROM event_view WHERE {_is_due(action)}"
    query += " OFFSET 0" if action in _WINDOWS else ""
    return f"""
(SELECT id, '{action}', {time}, over, extract(epoch FROM {_NOW} - {time})::float8, attempt FROM ({query}) AS found
WHERE attempt <> ALL(%(resting)s) ORDER BY {time} LIMIT {AT_ONCE})"""


_WAITING: Final = "FROM composition_view WHERE state = 0 AND NOT removed AND NOT awaits_sources AND live_stream_start"
_COMPOSE: Final = f"""
(SELECT event_id, '{COMPOSE}', live_stream_start, NULL, extract(epoch FROM {_NOW} - live_stream_start)::float8, attempt
FROM (
    SELECT event_id, live_stream_start, concat_ws(' ', '{COMPOSE}', c.id, c.version, e.version) AS attempt
    FROM (SELECT id, version, event_id, live_stream_start {_WAITING} <= {_NOW}) AS c LEFT JOIN event_view AS e ON e.id = event_id
) AS found
WHERE attempt <> ALL(%(resting)s) ORDER BY live_stream_start LIMIT {AT_ONCE})"""
_WAIT_FOR_A_FREE_CHANNEL: Final = f"""
FROM event_view AS waiting
WHERE awaited_channel_id IS NOT NULL AND (scheduled_end IS NULL OR scheduled_end > {_NOW})
AND NOT EXISTS (SELECT FROM event_view AS holder WHERE holder.on_air_channel_id = waiting.awaited_channel_id)"""
_TAKE: Final = f"""
(SELECT id, '{TAKE}', date_modified, scheduled_end, 0::float8, attempt FROM (
    SELECT DISTINCT ON (awaited_channel_id) id, date_modified, scheduled_end, concat_ws(' ', '{TAKE}', id, version) AS attempt
    {_WAIT_FOR_A_FREE_CHANNEL} ORDER BY awaited_channel_id, scheduled_start DESC NULLS LAST, id
) AS found WHERE attempt <> ALL(%(resting)s) LIMIT {AT_ONCE})"""
"""Select one Event for each channel that is free: the waiting Event with the latest scheduled start. It is never late."""
_DUE: Final = "UNION ALL".join((*map(_due, _TIMES), _TAKE, _COMPOSE))
_FOLLOWING: Final = " UNION ALL ".join(
    (
        *(f"(SELECT {time} AS instant FROM event_view WHERE {time} > {_NOW} ORDER BY {time} LIMIT 1)" for time in _TIMES.values()),
        f"(SELECT live_stream_start {_WAITING} > {_NOW} ORDER BY live_stream_start LIMIT 1)",
    )
)
_NEXT: Final = f"""
SELECT extract(epoch FROM min(instant) - coalesce(%(at)s::timestamptz, clock_timestamp()))::float8 FROM ({_FOLLOWING}) AS following
"""
_COUNTED: Final = {action: f"FROM event_view WHERE {_is_due(action)}" for action in _TIMES} | {
    TAKE: _WAIT_FOR_A_FREE_CHANNEL,
    COMPOSE: f"{_WAITING} <= {_NOW}",
}
_COUNTS: Final = "SELECT " + ", ".join(
    f"(SELECT count(*) FROM (SELECT {rows_due} LIMIT {MOST_COUNTED}) AS {action})" for action, rows_due in _COUNTED.items()
)


class DueEvent(NamedTuple):
    """An Event whose time `due` came `late` seconds ago. `end` is the time from which the action is too late. `attempt` identifies
    the action and the present state of the Event."""

    key: UUID
    action: str
    due: datetime
    end: datetime | None
    late: float
    attempt: str


class DueEvents:
    """Reads the times of Events. They are compared with `at`, or with the clock of the database if it is None."""

    def __init__(self, database: Pool) -> None:
        self._database = database

    async def due(self, *, resting: Collection[str] = (), at: datetime | None = None) -> list[DueEvent]:
        """Return what is due, by action, the longest due first, without the attempts that are `resting`."""
        rows = await self._database.rows(_DUE, {"resting": texts(list(resting)), "at": at})
        return [
            DueEvent(key, action, due.astimezone(UTC), end and end.astimezone(UTC), late, attempt)
            for key, action, due, end, late, attempt in rows
        ]  # in UTC: in the session's time zone, times that a change of clocks repeats would compare as different

    async def next_in(self, *, at: datetime | None = None) -> float | None:
        """Return the seconds until the next time that has not come yet; None if there is none."""
        ((seconds,),) = await self._database.rows(_NEXT, {"at": at})
        return None if seconds is None else float(seconds)

    async def counts(self, *, at: datetime | None = None) -> Mapping[str, int]:
        """Return the number of due Events by action, each up to `MOST_COUNTED`."""
        (counted,) = await self._database.rows(_COUNTS, {"at": at})
        return dict(zip(_COUNTED, counted, strict=True))

"""Reads of the Event view."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from domain.event.ports import EventRow as EventRow
from domain.event.values import LIVE, EventDetails, EventState
from projections.event.filters import EventFilter, ids_of, list_query, names_query, searches_only
from projections.event.shown import ShownEvent
from projections.event.totals import OF_STATES, tallied
from projections.event.view import EVENT_SEARCH, SCHEDULE_ENDS, STREAMING_STATES, USES_CHANNEL
from projections.kernel.data_loader import DataLoader
from projections.kernel.database.arrays import PackedArray, uuids
from projections.kernel.database.database import Database
from projections.kernel.database.page import Page

MOST_LIVE: Final = 10_000
MOST_AHEAD: Final = 1_000
_STATES: Final = ", ".join(str(int(state)) for state in sorted(LIVE))
_CONDITIONS: Final = {
    "room_id": "room_id = ANY(%(keys)s::uuid[])",
    "event_type_id": "event_type_id = ANY(%(keys)s::uuid[])",
    "category_ids": "category_ids && %(keys)s::uuid[]",
}
_SHOWING: Final = f"""
(SELECT id FROM event_view WHERE NOT deleted AND state IN ({_STATES}) AND {{condition}}
 ORDER BY scheduled_start, id LIMIT {MOST_LIVE})
UNION
(SELECT id FROM event_view WHERE NOT deleted AND scheduled_start >= %(at)s AND {{condition}}
 ORDER BY scheduled_start, id LIMIT {MOST_AHEAD})
ORDER BY id
"""


async def events_that_show(database: Database, keys: Sequence[UUID], *, link: str, at: datetime) -> Sequence[str]:
    """Return the ids of live Events, at most `MOST_LIVE`, and of the next `MOST_AHEAD` by their scheduled start from `at` on, whose
    field `link` names one of the records."""
    question = _SHOWING.format(condition=_CONDITIONS[link])
    return [str(key) for (key,) in await database.rows(question, {"keys": uuids(list(keys)), "at": at})]


_COLUMNS = "SELECT id, shown_version, document, date_created, date_modified FROM event_view "
_SHOWN = "SELECT id, shown_version, shown FROM event_view "
_PROTECTED = "SELECT id FROM event_view WHERE id = ANY(%s) AND NOT deleted AND document::json->>'vod_drm' = 'true'"
_TESTED = 20_000
_TESTED_BESIDE_OTHERS = 1_000
_WITHOUT_VOD = """
SELECT id, vod_due_at FROM event_view WHERE NOT deleted AND vod_due_at < %s ORDER BY vod_due_at, id LIMIT %s
"""
_NOT_STARTED = """
SELECT id, start_due_at FROM event_view
WHERE NOT deleted AND start_due_at < %s AND (scheduled_end IS NULL OR scheduled_end > %s) ORDER BY start_due_at, id LIMIT %s
"""
_NOT_STOPPED = f"""
SELECT id, scheduled_end FROM event_view
WHERE NOT deleted AND state IN ({STREAMING_STATES}) AND scheduled_end < %s ORDER BY scheduled_end, id LIMIT %s
"""
_BEGIN = "coalesce(auto_start_at, scheduled_start, '-infinity')"
_OVERLAPPING = f"""
SELECT id, coalesce(auto_start_at, scheduled_start), scheduled_end FROM event_view
WHERE channel_id = %(channel)s AND id <> %(without)s AND {USES_CHANNEL}
AND {_BEGIN} < coalesce(%(end)s, 'infinity'::timestamptz) AND {SCHEDULE_ENDS} > %(start)s
ORDER BY 2 NULLS FIRST, id LIMIT %(limit)s
"""
_OVERLAPPED = f"""
SELECT count(*) FROM (
    SELECT FROM event_view AS e WHERE auto_start_at BETWEEN %(now)s AND %(until)s AND channel_id IS NOT NULL AND EXISTS (
        SELECT FROM event_view AS o
        WHERE o.channel_id = e.channel_id AND o.id <> e.id AND {USES_CHANNEL}
        AND {_BEGIN} < coalesce(e.scheduled_end, 'infinity') AND {SCHEDULE_ENDS} > e.auto_start_at
    ) LIMIT %(limit)s
) AS overlapped
"""
_NOT_PROVISIONED = """
SELECT id, provision_due_at FROM event_view WHERE NOT deleted AND provision_due_at < %s ORDER BY provision_due_at, id LIMIT %s
"""
_NOT_TERMINATED = """
SELECT id, termination_due_at FROM event_view
WHERE NOT deleted AND termination_due_at < %s ORDER BY termination_due_at, id LIMIT %s
"""
_OF_STATES_COUNTED = "SELECT state, count(*) FROM event_view WHERE deleted = %(deleted)s GROUP BY state"
_LATEST = " ORDER BY date_created DESC, id DESC LIMIT 1"


class EventQueries:
    """Finds Events. Concurrent reads by id share one query."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._by_id = DataLoader[UUID, EventRow](self._load)
        self._shown = DataLoader[UUID, ShownEvent](self._load_shown)

    async def by_id(self, key: UUID) -> EventRow | None:
        """Return the Event with this id; None if it does not exist or is deleted."""
        return await self._by_id(key)

    async def shown(self, key: UUID) -> ShownEvent | None:
        """Return the Event with this id for a response."""
        return await self._shown(key)

    async def states(self, *, deleted: bool) -> dict[EventState, int]:
        """Return the number of Events in each state, from maintained totals. States without Events are left out."""
        rows = await self._database.lists.rows(OF_STATES, {"deleted": deleted})
        if rows and rows[0][0] is None:  # the view belongs to another build, whose totals this build does not know
            rows = await self._database.lists.rows(_OF_STATES_COUNTED, {"deleted": deleted})
        return {EventState(int(state)): count for state, count in rows if count}

    async def _load(self, keys: Sequence[UUID]) -> dict[UUID, EventRow]:
        rows = await self._database.rows(_COLUMNS + "WHERE id = ANY(%s) AND NOT deleted", (list(keys),))
        return {row[0]: _row(row) for row in rows}

    async def _load_shown(self, keys: Sequence[UUID]) -> dict[UUID, ShownEvent]:
        rows = await self._database.rows(_SHOWN + "WHERE id = ANY(%s) AND NOT deleted", (list(keys),))
        return {row[0]: ShownEvent(*row) for row in rows}

    async def existing(self, keys: Collection[UUID]) -> Collection[UUID]:
        """Return those of these Events that exist and are not deleted."""
        rows = await self._database.rows("SELECT id FROM event_view WHERE id = ANY(%s) AND NOT deleted", (list(keys),))
        return {key for (key,) in rows}

    async def details_of(self, keys: Collection[UUID]) -> dict[UUID, EventDetails]:
        """Return the details of those of these Events that exist and are not deleted."""
        return {key: row.details for key, row in (await self._load(list(keys))).items()}

    async def protected(self, keys: Collection[UUID]) -> Collection[UUID]:
        """Return those of these Events whose playback on demand uses DRM."""
        return {key for (key,) in await self._database.rows(_PROTECTED, (list(keys),))}

    async def by_reference(self, reference_id: str) -> EventRow | None:
        """Return the newest Event with this refId, which is not unique."""
        row = await self._latest(_COLUMNS, "ref_id", value=reference_id)
        return _row(row) if row else None

    async def shown_by_reference(self, reference_id: str) -> ShownEvent | None:
        row = await self._latest(_SHOWN, "ref_id", value=reference_id)
        return ShownEvent(*row) if row else None

    async def by_external_id(self, external_id: str) -> EventRow | None:
        row = await self._latest(_COLUMNS, "external_id", value=external_id)
        return _row(row) if row else None

    async def shown_by_external_id(self, external_id: str) -> ShownEvent | None:
        row = await self._latest(_SHOWN, "external_id", value=external_id)
        return ShownEvent(*row) if row else None

    async def on_air(self, channel_id: UUID) -> EventRow | None:
        """Return the Event that holds this channel; None if there is none."""
        row = await self._database.row(_COLUMNS + "WHERE on_air_channel_id = %s", (channel_id,))
        return _row(row) if row else None

    async def overlapping(
        self, channel_id: UUID, start: datetime, *, end: datetime | None, without: UUID, limit: int
    ) -> list[tuple[UUID, datetime | None, datetime | None]]:
        """Return other Events on the channel that the schedule starts, or that are live, in this time: their ids, starts and ends,
        the earliest first. `end` None means that the time has no end."""
        parameters = {"channel": channel_id, "start": start, "end": end, "without": without, "limit": limit}
        rows = await self._database.rows(_OVERLAPPING, parameters)
        return [(key, begin and begin.astimezone(UTC), over and over.astimezone(UTC)) for key, begin, over in rows]

    async def overlapped(self, now: datetime, *, until: datetime, limit: int) -> int:
        """Return the number of Events that the schedule starts in this time, while it starts another Event on their channel or
        one is live there. At most `limit` are counted."""
        ((count,),) = await self._database.lists.rows(_OVERLAPPED, {"now": now, "until": until, "limit": limit})
        return int(count)

    async def _latest(self, columns: LiteralString, column: LiteralString, *, value: str) -> Sequence[Any] | None:
        return await self._database.row(columns + f"WHERE {column} = %s AND NOT deleted" + _LATEST, (value,))

    async def not_started(self, before: datetime, *, now: datetime, limit: int) -> Sequence[tuple[UUID, datetime]]:
        """Return Events that were due to be live before this time and never were, with that time, the longest due first. Events
        whose end has passed too are left out."""
        return [(key, due) for key, due in await self._database.lists.rows(_NOT_STARTED, (before, now, limit))]

    async def not_stopped(self, before: datetime, *, limit: int) -> Sequence[tuple[UUID, datetime]]:
        """Return Events that were due to end before this time and are live, with that time, the longest due first."""
        return [(key, due) for key, due in await self._database.lists.rows(_NOT_STOPPED, (before, limit))]

    async def without_vod(self, before: datetime, *, limit: int) -> Sequence[tuple[UUID, datetime]]:
        """Return Events that were due to become video on demand before this time and did not, with that time, the longest due
        first."""
        rows = await self._database.lists.rows(_WITHOUT_VOD, (before, limit))
        return [(key, due) for key, due in rows]

    async def not_provisioned(self, before: datetime, *, limit: int) -> Sequence[tuple[UUID, datetime]]:
        """Return Events whose infrastructure was due before this time and does not exist, with that time, the longest due first."""
        return [(key, due) for key, due in await self._database.lists.rows(_NOT_PROVISIONED, (before, limit))]

    async def not_terminated(self, before: datetime, *, limit: int) -> Sequence[tuple[UUID, datetime]]:
        """Return Events whose infrastructure was due to be terminated before this time and was not, with that time, the longest due
        first."""
        return [(key, due) for key, due in await self._database.lists.rows(_NOT_TERMINATED, (before, limit))]

    async def page(self, filter_: EventFilter) -> Page[ShownEvent]:
        """Return one page of the Events that match, for a response. Names are looked up first, because PostgreSQL estimates the
        number of rows well for ids."""
        names = names_query(filter_)
        ids = ids_of(filter_, await self._database.lists.rows(*names)) if names is not None else {}
        if not all(ids.values()):
            return Page(filter_.window.limit, 0, [])
        query = list_query(filter_, ids, candidates=await self._candidates(filter_))
        expression, parameters = tallied(filter_, ids) or ("NULL", {})
        rows, total = await self._database.lists.page(
            query.page,
            f"SELECT coalesce({expression}, ({query.count}))",
            content=("shown",),
            parameters={**query.parameters, **parameters},
            prepare=query.prepare,
        )
        return Page(filter_.window.limit, total, [ShownEvent(*row) for row in rows])

    async def _candidates(self, filter_: EventFilter) -> PackedArray | None:
        """Return the Events that the search index finds, if they are so few that testing them is less work than applying the other
        filters."""
        if not filter_.search:
            return None
        most = _TESTED if searches_only(filter_) else _TESTED_BESIDE_OTHERS
        return await EVENT_SEARCH.candidates(self._database.lists, filter_.search.lower(), most=most)


def _row(row: Sequence[Any]) -> EventRow:
    key, version, document, created, modified = row
    return EventRow(key, version, _DETAILS.validate_json(document), created, modified)


_DETAILS = EventDetails.__pydantic_validator__

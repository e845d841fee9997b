"""Queries of publications."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

from domain.destination.targets import Target
from domain.kernel.clock import Clock
from domain.publication.row import PublicationRow
from domain.publication.values import PublicationKind, PublicationState, PublicationText
from projections.kernel.database.arrays import bigints, texts, uuids
from projections.kernel.database.database import Database
from projections.kernel.database.page import Page, Window, in_parts
from projections.kernel.sql.where import where
from projections.session.store import WantedQuery

KIND: Final = "publication"
WANTED: Final = WantedQuery(
    KIND,
    "SELECT id::text, id::text, run FROM publication_view WHERE kind = 1 AND state = 2 AND NOT withdrawn AND served_by IS NULL",
)
_SILENT: Final = timedelta(seconds=20)
"""The time without statistics after which no session counts as pushing: statistics arrive every two seconds, and a takeover takes
less than ten."""
_STATISTICS: Final = (
    "SELECT number, statistics, statistics_at FROM sessions WHERE kind = %s AND key = %s AND statistics IS NOT NULL"
)


class PushesSeen:
    """Reads `sessions`."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def of(self, publication: PublicationRow) -> Mapping[str, Any] | None:
        """Return the statistics of the present or the last session; empty if there was none. Return None if the publication is
        InProgress but no session reports."""
        pushed = publication.state is PublicationState.InProgress
        row = await self._database.row(_STATISTICS, (KIND, str(publication.id)))
        if row is None:
            return None if pushed else {}
        number, statistics, reported_at = row
        if not pushed:
            return {
                **statistics,
                "session": number,
                "connected": False,
                "uptime": 0.0,
                "bitrate": 0.0,
                "fps": 0.0,
                "time": reported_at,
            }
        return None if self._clock() - reported_at > _SILENT else {**statistics, "session": number, "time": reported_at}


_COLUMNS: Final[LiteralString] = (
    "SELECT p.id, p.version, p.kind, p.content_id, p.destination_id, p.target, p.transaction_id, p.client, p.state, p.reason, "
    "p.job, p.details, p.published, p.withdrawn, p.content, p.date_created, p.date_started, p.date_completed, "
    "coalesce(d.name, ''), p.audio_input_id, p.run, p.arrived, p.open, p.creations, p.served_by, p.start_awaited "
)
_FROM: Final[LiteralString] = (
    "FROM publication_view p JOIN record_view d ON d.kind = 'destination' AND d.id = p.destination_id::text AND NOT d.deleted "
)
_OF_DESTINATION: Final = (
    "FROM publication_view p LEFT JOIN record_view d ON d.kind = 'destination' AND d.id = p.destination_id::text "
    "WHERE NOT p.withdrawn AND p.destination_id = %s ORDER BY p.id LIMIT %s"
)
_AT_ONCE: Final = 200
"""The publications of an array that are read and written together."""
_ORDERS: Final[Mapping[str, LiteralString]] = {
    "created": "p.date_created",
    "started": "p.date_started",
    "completed": "p.date_completed",
}
_TRIGGERED: Final = """
SELECT a.webhook, a.ordering_key, max(a.started_at)
FROM unnest(%s::text[], %s::uuid[]) AS c(stream, webhook)
JOIN stream_events e ON e.stream = stream_key(c.stream)
JOIN delivery_attempts a ON a.webhook = c.webhook AND a.position = e.position AND a.ordering_key = c.stream
GROUP BY a.webhook, a.ordering_key
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationFilter:
    """A filter of publications. Parts combine with AND; a part that is None or empty does not filter.

    `since` and `until` bound the creation, inclusive; `order` is created, started or completed.
    """

    kind: PublicationKind
    targets: Sequence[Target] = ()
    content_part: str | None = None
    content_id: str | None = None
    destination_id: UUID | None = None
    transaction_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    order: str = "created"


class ListedPublications(NamedTuple):
    """The ids of a list of publications with the bytes of their content. `total` counts all that match the filter, unless the page
    is beyond the last one."""

    keys: Sequence[tuple[UUID, int]]
    total: int


class PublicationQueries:
    """Reads `publication_view`. Publications of a deleted destination are not found."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(
        self, key: UUID, *, destination_id: UUID | None = None, kind: PublicationKind | None = None
    ) -> PublicationRow | None:
        columns = await self._database.row(_COLUMNS + _FROM + "WHERE p.id = %s AND NOT p.withdrawn", (key,))
        row = _row(columns) if columns else None
        if row is None or destination_id not in (None, row.destination_id) or kind not in (None, row.kind):
            return None
        return row

    async def of_content(
        self, content_id: str, *, kind: PublicationKind, limit: int, state: PublicationState | None = None, awaited: bool = False
    ) -> Sequence[PublicationRow]:
        condition = (
            "p.content_id = %s AND p.kind = %s AND NOT p.withdrawn AND p.state = coalesce(%s::smallint, p.state) "
            "AND (p.start_awaited OR NOT %s)"
        )
        tail = f"WHERE {condition} ORDER BY p.date_created DESC, p.id DESC LIMIT %s"
        parameters = (content_id, int(kind), None if state is None else int(state), awaited, limit + 1)
        return [_row(row) for row in await self._database.rows(_COLUMNS + _FROM + tail, parameters)]

    async def of_destination(self, destination_id: UUID, *, limit: int) -> Sequence[PublicationRow]:
        return [_row(row) for row in await self._database.rows(_COLUMNS + _OF_DESTINATION, (destination_id, limit))]

    async def newest(self, content_id: str, destination_id: UUID, *, kind: PublicationKind) -> PublicationRow | None:
        """Return the most recently created publication of a content at a destination."""
        selection = PublicationFilter(kind=kind, content_id=content_id, destination_id=destination_id)
        condition, parameters = _conditions(selection)
        tail = f"WHERE {condition} ORDER BY p.date_created DESC, p.id DESC LIMIT 1"
        rows = await self._database.rows(_COLUMNS + _FROM + tail, parameters)
        return _row(rows[0]) if rows else None

    async def listed(self, selection: PublicationFilter, window: Window | None = None) -> ListedPublications:
        """Return all publications that match the filter, or a page of them, in its order."""
        condition, parameters = _conditions(selection)
        size = "coalesce(octet_length(p.details), 0) + octet_length(p.content)"
        tail = f"WHERE {condition} ORDER BY {_ORDERS[selection.order]} NULLS LAST, p.id"
        if window is not None:
            tail += " LIMIT %(limit)s OFFSET %(offset)s"
            parameters |= {"limit": window.limit, "offset": window.offset}
        rows = await self._database.lists.rows(f"SELECT p.id, {size}, count(*) OVER () {_FROM}{tail}", parameters)
        return ListedPublications([(key, bytes_) for key, bytes_, _ in rows], rows[0][2] if rows else 0)

    async def parts(self, listed: ListedPublications) -> AsyncIterator[Sequence[PublicationRow]]:
        """Yield the publications of a list, in parts that are read when the previous part was consumed. Publications that are gone
        are left out."""
        asked = f"{_COLUMNS}{_FROM} WHERE p.id = ANY(%s::uuid[]) AND NOT p.withdrawn"
        for keys in in_parts(listed.keys, most=_AT_ONCE):
            publications = {row.id: row for row in map(_row, await self._database.lists.rows(asked, (uuids(keys),)))}
            yield [publications[key] for key in keys if key in publications]

    async def page(self, selection: PublicationFilter, window: Window) -> Page[PublicationRow]:
        condition, parameters = _conditions(selection)
        tail = f"WHERE {condition} ORDER BY {_ORDERS[selection.order]} NULLS LAST, p.id LIMIT %(limit)s OFFSET %(offset)s"
        rows, total = await self._database.lists.page(
            _COLUMNS + _FROM + tail,
            f"SELECT count(*) {_FROM} WHERE {condition}",
            content=("details", "content"),
            parameters={**parameters, "limit": window.limit, "offset": window.offset},
        )
        return Page(window.limit, total, [_row(row) for row in rows])

    async def last_triggered(self, rows: Iterable[PublicationRow]) -> Mapping[tuple[UUID, UUID], datetime]:
        """Return the times when the callbacks of publications were last called, by publication and callback."""
        callback_keys = [(row.id, callback.id) for row in rows for callback in row.text.callbacks]
        if not callback_keys:
            return {}
        streams, callbacks = (
            texts([f"publication:{key}" for key, _ in callback_keys]),
            uuids([callback for _, callback in callback_keys]),
        )
        calls = await self._database.lists.rows(_TRIGGERED, (streams, callbacks))
        return {(UUID(stream.partition(":")[2]), callback): moment for callback, stream, moment in calls}


def _conditions(selection: PublicationFilter) -> tuple[str, dict[str, Any]]:
    conditions, parameters = where(
        [
            ("kind", int(selection.kind), "p.kind = %(kind)s"),
            ("targets", bigints(list(selection.targets)) if selection.targets else None, "p.target = ANY(%(targets)s::bigint[])"),
            ("part", selection.content_part or None, "strpos(lower(p.content_id), lower(%(part)s)) > 0"),
            ("content", selection.content_id, "p.content_id = %(content)s"),
            ("destination", selection.destination_id, "p.destination_id = %(destination)s"),
            ("transaction", selection.transaction_id, "p.transaction_id = %(transaction)s"),
            ("since", selection.since, "p.date_created >= %(since)s"),
            ("until", selection.until, "p.date_created <= %(until)s"),
        ]
    )
    return " AND ".join(["NOT p.withdrawn", *conditions]), parameters


def _row(columns: Sequence[Any]) -> PublicationRow:
    key, version, kind, content_id, destination, target, transaction, client, state, *rest = columns
    reason, job, details, published, withdrawn, text, created, started, completed, *more = rest
    return PublicationRow(
        key,
        version,
        PublicationKind(kind),
        content_id,
        destination,
        Target(target),
        transaction,
        client,
        PublicationState(state),
        reason,
        job,
        None if details is None else json.loads(details),
        published,
        withdrawn,
        PublicationText.model_validate_json(text),
        created,
        started,
        completed,
        *more,
    )

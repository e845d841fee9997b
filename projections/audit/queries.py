"""Queries of the event log for the audit: who changed what, when and why, and past states of aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic_core import from_json

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.mapper import Catalogue
from domain.kernel.stream_name import StreamName
from projections.kernel.database import Database
from projections.kernel.where import Part, where
from projections.log.hash_chain import leaf
from projections.log.streams import Streams

_COLUMNS = """
SELECT position, originator_id, originator_version, topic, event_id, recorded_at, metadata::text, state, salt FROM events
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """An event of the log. `aggregate` is the kind, `version` counts from 1, `hash` is the leaf in the tree of its commit."""

    position: int
    aggregate: str
    id: str
    version: int
    type: str
    event_id: UUID
    recorded_at: datetime
    actor: str
    transaction_id: str
    causation_id: str | None
    data: dict[str, Any]
    hash: str


@dataclass(frozen=True, slots=True)
class PastState:
    """A past state of an aggregate, with the log position and time of its last event."""

    root: AggregateRoot
    position: int
    recorded_at: datetime


@dataclass(frozen=True, kw_only=True)
class EntryFilter:
    """`after` and `before` are positions and exclusive. All conditions must hold."""

    after: int | None = None
    before: int | None = None
    aggregate: str | None = None
    id: str | None = None
    type: str | None = None
    actor: str | None = None
    transaction_id: str | None = None
    recorded_from: datetime | None = None
    recorded_to: datetime | None = None
    ascending: bool = False
    limit: int = 50


class AuditQueries:
    """Reads the event log itself, so the audit is always up to date."""

    def __init__(self, database: Database, streams: Streams, catalogue: Catalogue) -> None:
        self._database = database
        self._streams = streams
        self._catalogue = catalogue

    async def entries(self, selection: EntryFilter) -> list[Entry]:
        """One more than `limit` if there are more: this tells the caller that there is a next page."""
        conditions, parameters = where(self._parts(selection))
        condition = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        order = "ASC" if selection.ascending else "DESC"
        rows = await self._database.rows(
            f"{_COLUMNS}{condition} ORDER BY position {order} LIMIT %(limit)s", {**parameters, "limit": selection.limit + 1}
        )
        return [_entry(row) for row in rows]

    def _parts(self, selection: EntryFilter) -> list[Part]:
        streams = None
        if selection.id is not None:
            kinds = [selection.aggregate] if selection.aggregate else list(self._catalogue.aggregates)
            streams = [f"{kind}:{selection.id}" for kind in kinds]
        return [
            ("after", selection.after, "position > %(after)s"),
            ("before", selection.before, "position < %(before)s"),
            ("streams", streams, "originator_id = ANY(%(streams)s)"),
            ("kind", selection.aggregate, "split_part(originator_id, ':', 1) = %(kind)s"),
            ("type", selection.type, "topic = %(type)s"),
            ("actor", selection.actor, "metadata->>'actor' = %(actor)s"),
            ("transaction_id", selection.transaction_id, "metadata->>'correlation_id' = %(transaction_id)s"),
            ("recorded_from", selection.recorded_from, "recorded_at >= %(recorded_from)s"),
            ("recorded_to", selection.recorded_to, "recorded_at <= %(recorded_to)s"),
        ]

    async def history(self, aggregate: str, key: str) -> list[Entry]:
        """All events of one aggregate, oldest first."""
        rows = await self._database.rows(
            _COLUMNS + " WHERE originator_id = %s ORDER BY originator_version", (f"{aggregate}:{key}",)
        )
        return [_entry(row) for row in rows]

    async def past_state(
        self, aggregate: str, key: str, *, version: int | None = None, at: datetime | None = None
    ) -> PastState | None:
        """An aggregate at a version, at a time, or now; None if it did not exist then."""
        rows = await self._database.rows(
            "SELECT originator_id, originator_version, topic, state, position, recorded_at FROM events"
            " WHERE originator_id = %(stream)s"
            " AND (%(version)s::bigint IS NULL OR originator_version <= %(version)s)"
            " AND (%(at)s::timestamptz IS NULL OR recorded_at <= %(at)s) ORDER BY originator_version",
            {"stream": f"{aggregate}:{key}", "version": version, "at": at},
        )
        if not rows or (version is not None and rows[-1][1] < version):
            return None
        root = self._streams.folded(row[:4] for row in rows)[rows[0][0]]
        return PastState(root, rows[-1][4], rows[-1][5])


def _entry(row: Sequence[Any]) -> Entry:
    position, stream, version, topic, event_id, recorded_at, metadata, state, salt = row
    kind, key = StreamName.read(stream)
    cause = from_json(metadata)
    mark = leaf(stream=stream, version=version, topic=topic, event_id=event_id, metadata=metadata, state=state, salt=salt)
    return Entry(
        position=position,
        aggregate=kind,
        id=key,
        version=version,
        type=topic,
        event_id=event_id,
        recorded_at=recorded_at,
        actor=cause.get("actor", "system"),
        transaction_id=cause.get("correlation_id", ""),
        causation_id=cause.get("causation_id"),
        data=from_json(state),
        hash=mark.hex(),
    )

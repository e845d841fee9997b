"""Questions about the log itself: who changed what, when and why, and how anything stood at any moment. contract.md, "Audit"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic_core import from_json

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.mapper import Catalogue
from projections.kernel.database import Database
from projections.kernel.where import Part, where
from projections.log.streams import Streams

_COLUMNS = (
    "SELECT position, originator_id, originator_version, topic, event_id, recorded_at, metadata::text, state, link FROM events"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One domain event, as the audit shows it. `aggregate` is a kind, `version` counts from 1."""

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
class Moment:
    """An aggregate as it stood, and the log position and time at which it came to stand so."""

    root: AggregateRoot
    position: int
    recorded_at: datetime


@dataclass(frozen=True, kw_only=True)
class EntryFilter:
    """`after` and `before` are positions and exclusive; everything given must hold."""

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
    """Reads the log directly, so the audit is never behind it."""

    def __init__(self, database: Database, streams: Streams, catalogue: Catalogue) -> None:
        self._database = database
        self._streams = streams
        self._catalogue = catalogue

    async def entries(self, wanted: EntryFilter) -> list[Entry]:
        """One more than `limit`, where there is more: how the caller knows that there is a next page."""
        conditions, parameters = where(self._parts(wanted))
        asked = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        order = "ASC" if wanted.ascending else "DESC"
        rows = await self._database.rows(
            f"{_COLUMNS}{asked} ORDER BY position {order} LIMIT %(limit)s", {**parameters, "limit": wanted.limit + 1}
        )
        return [_entry(row) for row in rows]

    def _parts(self, wanted: EntryFilter) -> list[Part]:
        streams = None
        if wanted.id is not None:
            kinds = [wanted.aggregate] if wanted.aggregate else list(self._catalogue.aggregates)
            streams = [f"{kind}:{wanted.id}" for kind in kinds]
        return [
            ("after", wanted.after, "position > %(after)s"),
            ("before", wanted.before, "position < %(before)s"),
            ("streams", streams, "originator_id = ANY(%(streams)s)"),
            ("kind", wanted.aggregate, "split_part(originator_id, ':', 1) = %(kind)s"),
            ("type", wanted.type, "topic = %(type)s"),
            ("actor", wanted.actor, "metadata->>'actor' = %(actor)s"),
            ("transaction_id", wanted.transaction_id, "metadata->>'correlation_id' = %(transaction_id)s"),
            ("recorded_from", wanted.recorded_from, "recorded_at >= %(recorded_from)s"),
            ("recorded_to", wanted.recorded_to, "recorded_at <= %(recorded_to)s"),
        ]

    async def history(self, aggregate: str, key: str) -> list[Entry]:
        """Everything that ever happened to one aggregate, oldest first."""
        rows = await self._database.rows(
            _COLUMNS + " WHERE originator_id = %s ORDER BY originator_version", (f"{aggregate}:{key}",)
        )
        return [_entry(row) for row in rows]

    async def moment(self, aggregate: str, key: str, *, version: int | None = None, at: datetime | None = None) -> Moment | None:
        """One aggregate at a version, at a time, or now; None where it did not exist then."""
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
        return Moment(root, rows[-1][4], rows[-1][5])

    async def those_at(self, streams: Iterable[str], position: int) -> dict[str, AggregateRoot]:
        """Other aggregates as they stood when the log had reached a position: the names that links had then."""
        wanted: Sequence[str] = list(dict.fromkeys(streams))
        if not wanted:
            return {}
        rows = await self._database.rows(
            "SELECT originator_id, originator_version, topic, state FROM events"
            " WHERE originator_id = ANY(%s) AND position <= %s ORDER BY 1, 2",
            (wanted, position),
        )
        return self._streams.folded(rows)


def _entry(row: Sequence[Any]) -> Entry:
    position, stream, version, topic, event_id, recorded_at, metadata, state, link = row
    kind, _, key = stream.partition(":")
    cause = from_json(metadata)
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
        hash=link.hex(),
    )

"""Queries of the event log for the audit: who changed what, when and why, and past states of aggregates."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pydantic_core import from_json

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.cause import SYSTEM, ActorKind, kind_of
from domain.kernel.mapper import Catalogue
from domain.kernel.stream_name import StreamName
from projections.audit.chain import leaf_of
from projections.kernel.database.database import Pool
from projections.kernel.database.page import LARGEST, within_bytes
from projections.kernel.sql.where import where
from projections.log.bisection import position_at, position_before, version_at
from projections.log.reader import head
from projections.log.streams import Streams

_COLUMNS = """
position, originator_id, originator_version, topic, event_id, recorded_at, metadata::text, state, salt, metadata_hash, state_hash
"""
_SCANNED = 50_000
_STEPS = 100
_INDEXED = 10_000_000
"""The positions that one query of the index covers."""
_PATIENCE = 2.0
"""The number of seconds after which a page ends where it is."""
_MOST_SCANNED = 1_000_000
_LIFETIME = """
SELECT
    (SELECT recorded_at FROM stream_events WHERE stream = stream_key(%(stream)s) ORDER BY version LIMIT 1) AS since,
    newest.version
FROM (SELECT version FROM stream_events WHERE stream = stream_key(%(stream)s) ORDER BY version DESC LIMIT 1) AS newest
"""
_STREAMS = """
SELECT found.* FROM unnest(%(streams)s::text[]) AS s (name) CROSS JOIN LATERAL (
    SELECT {columns} FROM stream_events WHERE stream = stream_key(s.name) AND {conditions}
    ORDER BY version {direction} LIMIT %(limit)s
) AS found ORDER BY position {direction} LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class AuditedEvent:
    """An event of the log. `aggregate` is the kind, `version` counts from 1, `hash` is the leaf in the tree of its commit."""

    position: int
    aggregate: str
    id: str
    version: int
    type: str
    event_id: UUID
    recorded_at: datetime
    actor: str
    actor_kind: ActorKind | None
    end_user: str | None
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


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The time when an aggregate was first recorded, and its newest version."""

    since: datetime
    newest: int


@dataclass(frozen=True, slots=True)
class EntryPage:
    """A page of entries.

    The next page begins after the position `next` (a version, in a history), or before it in descending order. None marks the last
    page.
    """

    entries: Sequence[AuditedEvent]
    next: int | None


@dataclass(frozen=True, kw_only=True)
class EntryFilter:
    """A filter of entries, all of whose conditions must hold. `after` and `before` are positions and exclusive."""

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

    @property
    def searches(self) -> bool:
        """True if it has a condition that the order of the log does not help with."""
        return any(condition is not None for condition in (self.aggregate, self.type, self.actor, self.transaction_id))

    @property
    def direction(self) -> str:
        return "ASC" if self.ascending else "DESC"


class AuditQueries:
    """Reads the event log itself, so the audit is always up to date.

    Entries of a kind, type, actor or transaction are found by an index that is filled behind the log. The positions that the index
    does not have yet are read from the log, `scanned` events with each query and at most `most_scanned`. A page may end before it
    is full; the next page continues from there.
    """

    def __init__(
        self,
        pool: Pool,
        streams: Streams,
        catalogue: Catalogue,
        *,
        scanned: int = _SCANNED,
        most_scanned: int = _MOST_SCANNED,
    ) -> None:
        self._pool = pool
        self._streams = streams
        self._catalogue = catalogue
        self._scanned = scanned
        self._most_scanned = most_scanned

    async def entries(self, selection: EntryFilter) -> EntryPage:
        """Return a page of the entries that match."""
        first, last = await self._span(selection)
        if selection.id is not None:
            entries, more = await self._of_id(selection, first, last)
            return EntryPage(entries, entries[-1].position if more else None)
        begun, looked, page = time.monotonic(), 0, list[AuditedEvent]()
        for low, high, indexed in await self._parts(selection, first, last):
            read = self._read_index if indexed else self._read_log
            entries, more = await read(selection, low, high, limit=selection.limit - len(page))
            page += entries
            if more:
                return EntryPage(page, page[-1].position)
            looked += 0 if indexed else high - low + 1
            reached = high if selection.ascending else low
            if looked >= self._most_scanned or time.monotonic() - begun > _PATIENCE:
                return EntryPage(page, reached if (reached < last if selection.ascending else reached > first) else None)
        return EntryPage(page, None)

    async def _parts(self, selection: EntryFilter, first: int, last: int) -> list[tuple[int, int, bool]]:
        """Return the positions in parts, in the order of the page: the lowest and the highest position of each, and True if the
        index has it."""
        reached = 0
        if selection.searches:
            row = await self._pool.row("SELECT coalesce(max(position), 0) FROM audit_index")
            reached = 0 if row is None else min(int(row[0]), last)
        parts = [(low, high, True) for low, high in _parts(first, reached, size=_INDEXED)]
        parts += [(low, high, False) for low, high in _parts(max(first, reached + 1), last, size=self._scanned)]
        return parts if selection.ascending else parts[::-1]

    async def _span(self, selection: EntryFilter) -> tuple[int, int]:
        """Return the first and the last position that the filter allows."""
        first, last = (selection.after or 0) + 1, await head(self._pool)
        if selection.before is not None:
            last = min(last, selection.before - 1)
        if selection.recorded_from is not None:
            first = max(first, 1 + await position_before(self._pool, selection.recorded_from))
        if selection.recorded_to is not None:
            last = min(last, await position_at(self._pool, selection.recorded_to))
        return first, last

    async def _read_log(self, selection: EntryFilter, low: int, high: int, *, limit: int) -> tuple[list[AuditedEvent], bool]:
        conditions, named = _conditions(selection)
        question = f"SELECT {_COLUMNS} FROM events WHERE {conditions} ORDER BY position {selection.direction} LIMIT %(limit)s"
        return await self._page(selection, question, limit=limit, named={**named, "low": low, "high": high})

    async def _read_index(self, selection: EntryFilter, low: int, high: int, *, limit: int) -> tuple[list[AuditedEvent], bool]:
        others, named = where(
            [
                ("kind", selection.aggregate, "kind = %(kind)s"),
                ("type", selection.type, "topic = %(type)s"),
                ("transaction_id", selection.transaction_id, "transaction_id = %(transaction_id)s"),
            ]
        )
        by = [] if selection.actor is None else ["actor = %(actor)s", "end_user = %(actor)s"]
        branches = [
            f"(SELECT position FROM audit_index WHERE {' AND '.join([*others, *actor, 'position BETWEEN %(low)s AND %(high)s'])} "
            f"ORDER BY position {selection.direction} LIMIT %(limit)s)"
            for actor in ([actor_condition] for actor_condition in by or ["true"])
        ]
        question = (
            f"SELECT {_COLUMNS} FROM events JOIN ({' UNION '.join(branches)}) AS found USING (position) "
            f"ORDER BY position {selection.direction} LIMIT %(limit)s"
        )
        named |= {"actor": selection.actor, "low": low, "high": high}
        return await self._page(selection, question, limit=limit, named=named)

    async def _of_id(self, selection: EntryFilter, first: int, last: int) -> tuple[list[AuditedEvent], bool]:
        kinds = [selection.aggregate] if selection.aggregate else list(self._catalogue.aggregates)
        conditions, named = _conditions(selection)
        question = _STREAMS.format(columns=_COLUMNS, conditions=conditions, direction=selection.direction)
        named |= {"streams": [f"{kind}:{selection.id}" for kind in kinds], "low": first, "high": last}
        return await self._page(selection, question, limit=selection.limit, named=named)

    async def _page(
        self, selection: EntryFilter, question: str, *, limit: int, named: dict[str, Any]
    ) -> tuple[list[AuditedEvent], bool]:
        rows = await self._pool.rows(within_bytes(question, order=f"position {selection.direction}"), {**named, "limit": limit + 1})
        return _first(rows, limit=limit)

    async def history(self, aggregate: str, key: str, *, after: int = 0, limit: int = LARGEST) -> EntryPage:
        """Return the events of one aggregate after a version, the oldest first."""
        question = f"SELECT {_COLUMNS} FROM stream_events WHERE stream = stream_key(%s) AND version > %s ORDER BY version LIMIT %s"
        rows = await self._pool.rows(within_bytes(question, order="originator_version"), (f"{aggregate}:{key}", after, limit + 1))
        entries, more = _first(rows, limit=limit)
        return EntryPage(entries, entries[-1].version if more else None)

    async def past_state(
        self, aggregate: str, key: str, *, version: int | None = None, at: datetime | None = None
    ) -> PastState | None:
        """Return an aggregate at a version, at a time, or now; None if it did not exist then."""
        stream = f"{aggregate}:{key}"
        if version is None:
            version = await version_at(self._pool, stream, moment=at or datetime.max.replace(tzinfo=UTC))
        row = await self._pool.row(
            "SELECT position, recorded_at FROM stream_events WHERE stream = stream_key(%s) AND version = %s", (stream, version)
        )
        root = await self._streams.at_version(stream, version) if row is not None else None
        return None if row is None or root is None else PastState(root, *row)

    async def steps(
        self, aggregate: str, key: str, *, after: int, through: int
    ) -> AsyncIterator[tuple[AuditedEvent, AggregateRoot]]:
        """Yield the events of an aggregate after one version up to another, each with the aggregate as of that event."""
        stream = f"{aggregate}:{key}"
        root = await self._streams.at_version(stream, after)
        question = f"SELECT {_COLUMNS} FROM stream_events WHERE stream = stream_key(%s) AND version > %s AND version <= %s"
        while rows := await self._pool.rows(f"{question} ORDER BY version LIMIT {_STEPS}", (stream, after, through)):
            for row in rows:
                entry = _entry(row)
                copy = None if root is None else root.copy()
                root = self._streams.apply(copy, stream=stream, version=entry.version, topic=entry.type, state=row[7])
                yield entry, root
                after = entry.version

    async def lifetime(self, aggregate: str, key: str) -> Lifetime | None:
        """Return the lifetime of an aggregate; None if it never existed."""
        row = await self._pool.row(_LIFETIME, {"stream": f"{aggregate}:{key}"})
        return None if row is None else Lifetime(*row)

    async def position_at(self, at: datetime | None) -> int:
        """Return the last position of the log at a time, or now."""
        return await head(self._pool) if at is None else await position_at(self._pool, at)


def _first(rows: Sequence[Sequence[Any]], *, limit: int) -> tuple[list[AuditedEvent], bool]:
    """Return the first `limit` entries of rows that were read `within_bytes`, one more than `limit`, and True if there are more."""
    entries = [_entry(row) for row in rows[:limit]]
    return entries, bool(rows) and rows[0][-1] > len(entries)


def _parts(first: int, last: int, *, size: int) -> list[tuple[int, int]]:
    """Return the positions from `first` to `last` in parts, each with its lowest and its highest position."""
    return [(low, min(last, low + size - 1)) for low in range(first, last + 1, size)]


def _conditions(selection: EntryFilter) -> tuple[str, dict[str, Any]]:
    """Return the conditions, between the positions `low` and `high`, and their parameters."""
    conditions, named = where(
        [
            ("kind", selection.aggregate, "split_part(originator_id, ':', 1) = %(kind)s"),
            ("type", selection.type, "topic = %(type)s"),
            ("actor", selection.actor, "(metadata->>'actor' = %(actor)s OR metadata->>'end_user' = %(actor)s)"),
            ("transaction_id", selection.transaction_id, "metadata->>'correlation_id' = %(transaction_id)s"),
        ]
    )
    return " AND ".join(["position BETWEEN %(low)s AND %(high)s", *conditions]), named


def _entry(row: Sequence[Any]) -> AuditedEvent:
    position, stream, version, topic, event_id, recorded_at, metadata, state, salt, metadata_hash, state_hash, *_ = row
    kind, key = StreamName.read(stream)
    cause = from_json(metadata)
    mark = leaf_of((stream, version, topic, event_id, metadata, state, salt, metadata_hash, state_hash))
    return AuditedEvent(
        position=position,
        aggregate=kind,
        id=key,
        version=version,
        type=topic,
        event_id=event_id,
        recorded_at=recorded_at,
        actor=cause.get("actor", SYSTEM),
        actor_kind=kind_of(cause),
        end_user=cause.get("end_user"),
        transaction_id=cause.get("correlation_id", ""),
        causation_id=cause.get("causation_id"),
        data=from_json(state),
        hash=mark.hex(),
    )

"""Aggregates from the log: the latest snapshot, if there is one, and every event after it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from pydantic_core import from_json, to_json

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.mapper import EventMapper
from domain.kernel.stream_name import StreamName
from projections.kernel.arrays import texts
from projections.kernel.data_loader import DataLoader
from projections.kernel.database import Database

SNAPSHOT_EVERY = 100
_SNAPSHOT_FORM = 2

_LOAD = """
SELECT originator_id, originator_version, NULL AS topic, state FROM snapshots WHERE originator_id = ANY(%(streams)s)
UNION ALL
SELECT e.originator_id, e.originator_version, e.topic, e.state
FROM events e LEFT JOIN snapshots s USING (originator_id)
WHERE e.originator_id = ANY(%(streams)s) AND e.originator_version > coalesce(s.originator_version, 0)
ORDER BY 1, 2
"""
_LOAD_ALL = """
SELECT originator_id, originator_version, topic, state FROM events WHERE originator_id = ANY(%(streams)s) ORDER BY 1, 2
"""
_LOAD_AS_OF = """
WITH kept AS (
    SELECT s.originator_id, s.originator_version, s.state FROM snapshots s JOIN events e USING (originator_id, originator_version)
    WHERE s.originator_id = ANY(%(streams)s::text[]) AND e.position <= %(position)s
)
SELECT originator_id, originator_version, NULL AS topic, state FROM kept
UNION ALL
SELECT e.originator_id, e.originator_version, e.topic, e.state
FROM events e LEFT JOIN kept USING (originator_id)
WHERE e.originator_id = ANY(%(streams)s::text[]) AND e.position <= %(position)s
    AND e.originator_version > coalesce(kept.originator_version, 0)
ORDER BY 1, 2
"""
_LOAD_ALL_AS_OF = """
SELECT originator_id, originator_version, topic, state FROM events
WHERE originator_id = ANY(%(streams)s::text[]) AND position <= %(position)s ORDER BY 1, 2
"""
_KEEP = """
INSERT INTO snapshots (originator_id, originator_version, state) VALUES (%s, %s, %s)
ON CONFLICT (originator_id) DO UPDATE SET originator_version = excluded.originator_version, state = excluded.state
WHERE excluded.originator_version > snapshots.originator_version
"""


class Streams:
    """Loads aggregates; loads of the same moment share one query."""

    def __init__(self, database: Database, mapper: EventMapper) -> None:
        self._database = database
        self._mapper = mapper
        self.load = DataLoader[str, AggregateRoot](self._load)

    async def _load(self, streams: Sequence[str]) -> dict[str, AggregateRoot]:
        rows = await self._database.rows(_LOAD, {"streams": list(streams)})
        try:
            return self.folded(rows)
        except _ForeignSnapshot:
            return self.folded(await self._database.rows(_LOAD_ALL, {"streams": list(streams)}))

    async def as_of(self, streams: Collection[str], position: int) -> dict[str, AggregateRoot]:
        """Aggregates as of a position of the log; those that did not exist yet are absent."""
        if not streams:
            return {}
        asked = {"streams": texts(list(streams)), "position": position}
        try:
            return self.folded(await self._database.rows(_LOAD_AS_OF, asked))
        except _ForeignSnapshot:
            return self.folded(await self._database.rows(_LOAD_ALL_AS_OF, asked))

    def folded(self, rows: Iterable[Sequence[Any]]) -> dict[str, AggregateRoot]:
        """Aggregates of rows (stream, version, topic or None for a snapshot, state), in order within each stream."""
        roots: dict[str, AggregateRoot] = {}
        for stream, version, topic, state in rows:
            if topic is None:
                roots[stream] = self._restored(stream, version, state)
            else:
                roots[stream] = self.applied(roots.get(stream), stream=stream, version=version, topic=topic, state=state)
        return roots

    def applied(self, root: AggregateRoot | None, *, stream: str, version: int, topic: str, state: bytes) -> AggregateRoot:
        event = self._mapper.read(topic, stream=stream, version=version, state=state)
        mutated: AggregateRoot = event.mutate(root)  # type: ignore[assignment]
        return mutated

    def _restored(self, stream: str, version: int, state: bytes) -> AggregateRoot:
        kept = from_json(state)
        if kept.pop("form", None) != _SNAPSHOT_FORM:
            raise _ForeignSnapshot
        return self._mapper.catalogue.aggregate(StreamName.read(stream).kind).from_snapshot(
            stream=stream, version=version, state=kept
        )

    async def keep(self, stream: str, *, version: int, snapshot: dict[str, Any]) -> None:
        """Store a snapshot; an older one never replaces a newer."""
        await self._database.execute(_KEEP, (stream, version, to_json({"form": _SNAPSHOT_FORM, **snapshot})))


class _ForeignSnapshot(Exception):
    """A snapshot that this version of the code cannot read: the whole stream is read instead."""

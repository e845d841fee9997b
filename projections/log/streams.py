"""Aggregates from the log: the latest snapshot, if there is one, and every event after it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from pydantic_core import from_json, to_json

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.mapper import EventMapper
from domain.kernel.stream_name import StreamName
from projections.kernel.arrays import byte_strings, texts
from projections.kernel.data_loader import DataLoader
from projections.kernel.database import Database
from projections.log.snapshot_forms import SnapshotForms

SNAPSHOT_EVERY = 100
_FOR_OTHER_BUILDS = 10 * SNAPSHOT_EVERY
"""Versions after which a snapshot of another form is deleted: no build seems to write it any more."""

_LOAD = """
WITH kept AS (
    SELECT originator_id, originator_version, state FROM snapshots
    WHERE originator_id = ANY(%(streams)s) AND form = ANY(%(forms)s)
)
SELECT originator_id, originator_version, NULL AS topic, state FROM kept
UNION ALL
SELECT e.originator_id, e.originator_version, e.topic, e.state
FROM events e LEFT JOIN kept USING (originator_id)
WHERE e.originator_id = ANY(%(streams)s) AND e.originator_version > coalesce(kept.originator_version, 0)
ORDER BY 1, 2
"""
_LOAD_AS_OF = """
WITH kept AS (
    SELECT s.originator_id, s.originator_version, s.state FROM snapshots s JOIN events e USING (originator_id, originator_version)
    WHERE s.originator_id = ANY(%(streams)s::text[]) AND s.form = ANY(%(forms)s) AND e.position <= %(position)s
)
SELECT originator_id, originator_version, NULL AS topic, state FROM kept
UNION ALL
SELECT e.originator_id, e.originator_version, e.topic, e.state
FROM events e LEFT JOIN kept USING (originator_id)
WHERE e.originator_id = ANY(%(streams)s::text[]) AND e.position <= %(position)s
    AND e.originator_version > coalesce(kept.originator_version, 0)
ORDER BY 1, 2
"""
_KEEP = f"""
WITH outdated AS (
    DELETE FROM snapshots
    WHERE originator_id = %(stream)s AND form <> %(form)s AND originator_version < %(version)s - {_FOR_OTHER_BUILDS}
)
INSERT INTO snapshots (originator_id, form, originator_version, state) VALUES (%(stream)s, %(form)s, %(version)s, %(state)s)
ON CONFLICT (originator_id, form) DO UPDATE SET originator_version = excluded.originator_version, state = excluded.state
WHERE excluded.originator_version > snapshots.originator_version
"""


class Streams:
    """Loads aggregates; loads of the same moment share one query."""

    def __init__(self, database: Database, mapper: EventMapper) -> None:
        self._database = database
        self._mapper = mapper
        self._forms = SnapshotForms(mapper.catalogue)
        self.load = DataLoader[str, AggregateRoot](self._load)

    async def _load(self, streams: Sequence[str]) -> dict[str, AggregateRoot]:
        return self.folded(await self._database.rows(_LOAD, {"streams": list(streams), "forms": self._forms_of(streams)}))

    async def as_of(self, streams: Collection[str], position: int) -> dict[str, AggregateRoot]:
        """Aggregates as of a position of the log; those that did not exist yet are absent."""
        if not streams:
            return {}
        given = {"streams": texts(list(streams)), "forms": self._forms_of(streams), "position": position}
        return self.folded(await self._database.rows(_LOAD_AS_OF, given))

    def _forms_of(self, streams: Iterable[str]) -> Any:
        kinds = {StreamName.read(stream).kind for stream in streams}
        return byte_strings([self._forms.of(kind) for kind in kinds])

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
        kind = self._mapper.catalogue.aggregate(StreamName.read(stream).kind)
        return kind.from_snapshot(stream=stream, version=version, state=from_json(state))

    async def keep(self, stream: str, *, version: int, snapshot: dict[str, Any]) -> None:
        """Store a snapshot; an older one never replaces a newer one of the same form."""
        form = self._forms.of(StreamName.read(stream).kind)
        given = {"stream": stream, "form": form, "version": version, "state": to_json(snapshot)}
        await self._database.execute(_KEEP, given)

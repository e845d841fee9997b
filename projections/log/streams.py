"""Aggregates loaded from the log: the latest snapshot, if there is one, and every event after it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import Any, get_type_hints

from pydantic import BaseModel
from pydantic_core import from_json, to_json

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.mapper import Catalogue, EventMapper
from domain.kernel.stream_name import StreamName
from projections.kernel.data_loader import DataLoader
from projections.kernel.database.arrays import byte_strings, texts
from projections.kernel.database.database import Database

# The form of an aggregate's snapshots: a hash of what this build puts into them. Builds that know different events make different
# snapshots: an older build ignores a member that it does not know, so its snapshot permanently lacks that member. Each build
# reads and writes only snapshots of its own form.

_ENVELOPE = 3
"""The version of the result of `AggregateRoot.snapshot`."""


class SnapshotForms:
    """The forms of all aggregates, each computed when it is first needed."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._forms: dict[str, bytes] = {}

    def of(self, kind: str) -> bytes:
        """Return the form of a kind, 16 bytes. Raise `UnknownTopic` if there is no such kind."""
        form = self._forms.get(kind)
        if form is None:
            form = self._forms[kind] = form_of(self._catalogue.aggregate(kind))
        return form


@cache
def form_of(root: type[AggregateRoot]) -> bytes:
    """Return a hash of the kind, of the topics, versions and fields of its events, of the fields of its state, and of its code's
    version.

    It is computed once for each class, since the schemas of an aggregate's events take some milliseconds.
    """
    events = sorted((event.TOPIC, event.class_version, event.model_json_schema()) for event in root.EVENTS)
    details = get_type_hints(root).get("details")
    state = details.model_json_schema() if isinstance(details, type) and issubclass(details, BaseModel) else None
    return sha256(to_json([_ENVELOPE, root.KIND, root.SNAPSHOT_VERSION, events, state])).digest()[:16]


SNAPSHOT_EVERY = 100
_FOR_OTHER_BUILDS = 10 * SNAPSHOT_EVERY
"""The number of versions after which a snapshot of another form is deleted, because no build seems to write that form any more."""

_LOAD = """
WITH kept AS (
    SELECT originator_id, originator_version, state FROM snapshots
    WHERE originator_id = ANY(%(streams)s::text[]) AND form = ANY(%(forms)s)
        AND NOT EXISTS (SELECT FROM redacted_streams r WHERE r.stream = originator_id AND r.version > originator_version)
)
SELECT originator_id, originator_version, NULL AS topic, state FROM kept
UNION ALL
SELECT e.originator_id, e.originator_version, e.topic, e.state
FROM (SELECT DISTINCT unnest(%(streams)s::text[])) AS s (originator_id) LEFT JOIN kept USING (originator_id)
JOIN stream_versions v ON v.stream = stream_key(s.originator_id) AND v.version > coalesce(kept.originator_version, 0)
JOIN events e ON e.position = v.position
ORDER BY 1, 2
"""
_LOAD_AS_OF = """
WITH kept AS (
    SELECT s.originator_id, s.originator_version, s.state
    FROM snapshots s JOIN stream_versions v ON v.stream = stream_key(s.originator_id) AND v.version = s.originator_version
    WHERE s.originator_id = ANY(%(streams)s::text[]) AND s.form = ANY(%(forms)s) AND v.position <= %(position)s
        AND NOT EXISTS (SELECT FROM redacted_streams r WHERE r.stream = s.originator_id AND r.version > s.originator_version)
)
SELECT originator_id, originator_version, NULL AS topic, state FROM kept
UNION ALL
SELECT e.originator_id, e.originator_version, e.topic, e.state
FROM (SELECT DISTINCT unnest(%(streams)s::text[])) AS s (originator_id) LEFT JOIN kept USING (originator_id)
JOIN stream_versions v ON v.stream = stream_key(s.originator_id) AND v.version > coalesce(kept.originator_version, 0)
    AND v.position <= %(position)s
JOIN events e ON e.position = v.position
ORDER BY 1, 2
"""
_SLICE = 200
_SNAPSHOT = """
SELECT originator_id, originator_version, NULL, state FROM snapshots
WHERE originator_id = %(stream)s AND form = %(form)s AND originator_version <= %(version)s
    AND NOT EXISTS (SELECT FROM redacted_streams r WHERE r.stream = originator_id AND r.version > originator_version)
"""
_AFTER = """
SELECT originator_id, version, topic, state FROM stream_events
WHERE stream = stream_key(%(stream)s) AND version > %(after)s AND version <= %(version)s
ORDER BY version LIMIT %(limit)s
"""
_KEEP = f"""
WITH outdated AS (
    DELETE FROM snapshots
    WHERE originator_id = %(stream)s AND form <> %(form)s AND originator_version < %(version)s - {_FOR_OTHER_BUILDS}
)
INSERT INTO snapshots (originator_id, form, originator_version, state) SELECT %(stream)s, %(form)s, %(version)s, %(state)s
WHERE NOT EXISTS (SELECT FROM redacted_streams WHERE stream = %(stream)s AND version > %(version)s)
ON CONFLICT (originator_id, form) DO UPDATE SET originator_version = excluded.originator_version, state = excluded.state
WHERE excluded.originator_version > snapshots.originator_version
"""


class Streams:
    """Loads aggregates. Loads that are requested at the same moment share one query."""

    def __init__(self, database: Database, mapper: EventMapper) -> None:
        self._database = database
        self._mapper = mapper
        self._forms = SnapshotForms(mapper.catalogue)
        self.load = DataLoader[str, AggregateRoot](self._load)

    async def at_version(self, stream: str, version: int) -> AggregateRoot | None:
        """Return an aggregate as of a version; None if the stream has no events.

        A stream of any length is read in slices, so that it neither fills the memory nor delays other requests.
        """
        pool, form = self._database.lists, self._forms.of(StreamName.read(stream).kind)
        parameters = {"stream": stream, "version": version, "form": form, "limit": _SLICE}
        root = self.fold(await pool.rows(_SNAPSHOT, parameters)).get(stream)
        while rows := await pool.rows(_AFTER, {**parameters, "after": 0 if root is None else root.version}):
            for _, number, topic, state in rows:
                root = self.apply(root, stream=stream, version=number, topic=topic, state=state)
        return root

    async def _load(self, streams: Sequence[str]) -> dict[str, AggregateRoot]:
        return await self._fold_in_slices(
            await self._database.rows(_LOAD, {"streams": list(streams), "forms": self._forms_of(streams)})
        )

    async def as_of(self, streams: Collection[str], position: int) -> dict[str, AggregateRoot]:
        """Return aggregates as of a position of the log, by stream. Aggregates that did not exist yet are absent."""
        if not streams:
            return {}
        parameters = {"streams": texts(list(streams)), "forms": self._forms_of(streams), "position": position}
        return await self._fold_in_slices(await self._database.rows(_LOAD_AS_OF, parameters))

    def _forms_of(self, streams: Iterable[str]) -> Any:
        kinds = {StreamName.read(stream).kind for stream in streams}
        return byte_strings([self._forms.of(kind) for kind in kinds])

    async def _fold_in_slices(self, rows: Sequence[Sequence[Any]]) -> dict[str, AggregateRoot]:
        """Fold the rows in slices, so that other requests are served in between."""
        roots: dict[str, AggregateRoot] = {}
        for start in range(0, len(rows), _SLICE):
            if start:
                await asyncio.sleep(0)
            roots = self.fold(rows[start : start + _SLICE], roots)
        return roots

    def fold(self, rows: Iterable[Sequence[Any]], earlier: Mapping[str, AggregateRoot] | None = None) -> dict[str, AggregateRoot]:
        """Return the aggregates that result from rows (stream, version, topic or None for a snapshot, state), by stream.

        The rows are in order within each stream. `earlier` holds the aggregates that earlier rows resulted in.
        """
        roots = dict(earlier or {})
        for stream, version, topic, state in rows:
            if topic is None:
                roots[stream] = self._restore(stream, version, state)
            else:
                roots[stream] = self.apply(roots.get(stream), stream=stream, version=version, topic=topic, state=state)
        return roots

    def apply(self, root: AggregateRoot | None, *, stream: str, version: int, topic: str, state: bytes) -> AggregateRoot:
        event = self._mapper.read(topic, stream=stream, version=version, state=state)
        mutated: AggregateRoot = event.mutate(root)  # type: ignore[assignment]
        return mutated

    def _restore(self, stream: str, version: int, state: bytes) -> AggregateRoot:
        kind = self._mapper.catalogue.aggregate(StreamName.read(stream).kind)
        return kind.from_snapshot(stream=stream, version=version, state=from_json(state))

    async def keep(self, stream: str, *, version: int, snapshot: dict[str, Any]) -> None:
        """Store a snapshot. An older snapshot never replaces a newer one of the same form."""
        form = self._forms.of(StreamName.read(stream).kind)
        parameters = {"stream": stream, "form": form, "version": version, "state": to_json(snapshot)}
        await self._database.execute(_KEEP, parameters)

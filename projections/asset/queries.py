"""Queries of assets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

from domain.asset.ports import UNASKED, AssetFilter
from domain.asset.row import AssetRow
from domain.asset.values import AssetState, AssetType, CaptionKind
from projections.kernel.database.arrays import bigints, texts
from projections.kernel.database.database import Database
from projections.kernel.sql.where import where

_STORE: Final = "INSERT INTO caption_texts (id, content) VALUES (%s, %s) ON CONFLICT DO NOTHING"


class StoredCaptionTexts:
    """The adapter of the port `domain.asset.ports.CaptionTexts`, also used by workers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store(self, key: UUID, content: bytes) -> None:
        await self._database.execute(_STORE, (key, content))

    async def read(self, key: UUID) -> bytes | None:
        row = await self._database.row("SELECT content FROM caption_texts WHERE id = %s", (key,))
        return None if row is None else bytes(row[0])

    async def forget(self, key: UUID) -> None:
        """Delete a text once its job has converted it to WebVTT."""
        await self._database.execute("DELETE FROM caption_texts WHERE id = %s", (key,))


async def remove_texts(database: Database, before: datetime) -> int:
    """Remove texts whose jobs have failed, or were never accepted, and return their number."""
    return await database.execute("DELETE FROM caption_texts WHERE sent_at < %s", (before,))


_COLUMNS: Final[LiteralString] = (
    "SELECT id, shown_version, event_id, type, state, name, path, job, size, file_modified, removed, date_created, date_modified, "
    "language, kind FROM asset_view "
)
_SHOWN_CAPTIONS: Final[LiteralString] = (
    "WHERE event_id = %s AND type = %s AND job IS NOT NULL AND size IS NOT NULL AND holds_path AND NOT removed "
    "ORDER BY date_created, id"
)
_REMOVED_CAPTIONS: Final[LiteralString] = (
    "WHERE id IN (SELECT DISTINCT ON (path) id FROM asset_view WHERE event_id = %s AND type = 4 AND job IS NULL "
    "ORDER BY path, date_created DESC, id DESC) AND removed ORDER BY path"
)
_FILES_LEFT: Final = "SELECT id FROM asset_view WHERE removed AND holds_path ORDER BY id LIMIT %s"
_SUFFIX: Final = (
    "EXISTS (SELECT FROM unnest(%(extensions)s::text[]) AS e (suffix) WHERE right(lower(path), length(suffix)) = suffix)"
)


class AssetPlace(NamedTuple):
    """A place in a list of assets: after the asset with this time of creation and id, which may have been removed since."""

    created: datetime
    id: UUID


class AssetQueries:
    """Reads `asset_view`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, key: UUID) -> AssetRow | None:
        row = await self._database.row(_COLUMNS + "WHERE id = %s AND NOT removed", (key,))
        return _row(row) if row else None

    async def matching(self, selection: AssetFilter, *, limit: int, after: AssetPlace | None = None) -> Sequence[AssetRow]:
        """Return the assets that match, at most `limit` and one more. `after` leaves out the assets up to that place.

        A contentId is the id of an Event, so any other text matches nothing.
        """
        content = None if selection.content_id is None else _as_id(selection.content_id)
        if selection.content_id is not None and content is None:
            return []
        conditions, parameters = where(
            [
                ("event_id", selection.event_id, "event_id = %(event_id)s"),
                ("content_id", content, "event_id = %(content_id)s"),
                ("job", selection.job, "job = %(job)s"),
                ("name", selection.name, "name = %(name)s"),
                ("states", bigints(list(selection.states)) if selection.states else None, "state = ANY(%(states)s::bigint[])"),
                ("types", bigints(list(selection.types or UNASKED)), "type = ANY(%(types)s::bigint[])"),
                ("created", after and after.created, "(date_created, id) > (%(created)s, %(last)s)"),
                (
                    "extensions",
                    texts([extension.lower() for extension in selection.extensions]) if selection.extensions else None,
                    _SUFFIX,
                ),
            ]
        )
        tail = " ORDER BY date_created, id LIMIT %(most)s"
        parameters["last"] = after and after.id
        statement = f"{_COLUMNS} WHERE {' AND '.join(['NOT removed', 'holds_path', *conditions])}{tail}"
        return [_row(row) for row in await self._database.lists.rows(statement, {**parameters, "most": limit + 1})]

    async def of_event(self, event_id: UUID) -> Sequence[AssetRow]:
        rows = await self._database.rows(_COLUMNS + "WHERE event_id = %s AND holds_path ORDER BY date_created, id", (event_id,))
        return [_row(row) for row in rows]

    async def caption(self, event_id: UUID, *, language: str, kind: CaptionKind, name: str) -> AssetRow | None:
        row = await self._database.row(
            _COLUMNS + "WHERE event_id = %s AND language = %s AND kind = %s AND name = %s AND job IS NOT NULL AND holds_path "
            "AND NOT removed",
            (event_id, language, kind.value, name),
        )
        return _row(row) if row else None

    async def captions(self, event_id: UUID) -> Sequence[AssetRow]:
        """Return the captions that clients have added to an Event and that have a text, in the order in which they were added."""
        rows = await self._database.rows(_COLUMNS + _SHOWN_CAPTIONS, (event_id, AssetType.CAPTION))
        return [_row(row) for row in rows]

    async def removed_captions(self, event_id: UUID) -> Sequence[AssetRow]:
        """Return the text tracks of the source that were removed and not found again since."""
        rows = await self._database.rows(_COLUMNS + _REMOVED_CAPTIONS, (event_id,))
        return [_row(row) for row in rows]

    async def is_taken(self, path: str) -> bool:
        return bool(await self._database.row("SELECT FROM asset_view WHERE path = %s AND holds_path", (path,)) is not None)

    async def with_files_left(self, *, limit: int) -> Sequence[UUID]:
        """Return the removed assets whose files are still to be deleted."""
        return [key for (key,) in await self._database.rows(_FILES_LEFT, (limit,))]


def _as_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _row(columns: Sequence[Any]) -> AssetRow:
    key, version, event_id, type_, state, *rest, kind = columns
    rest.append(None if kind is None else CaptionKind(kind))
    return AssetRow(key, version, event_id, AssetType(type_), AssetState(state), *rest)

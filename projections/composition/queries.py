"""Queries of compositions."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC
from typing import Final
from uuid import UUID

from domain.composition.checks import event_of
from domain.composition.row import CompositionRow
from domain.composition.values import CompositionKind, CompositionState, Playlist
from projections.kernel.database.database import Database

_OF_EVENT: Final = """
SELECT id, shown_version, version, event_id, kind, content, state, live_stream_start, private, client, job, generation, reason,
    awaits_sources
FROM composition_view WHERE event_id = %s AND NOT removed
"""
_AWAITING: Final = "SELECT event_id, content FROM composition_view WHERE awaits_sources AND NOT removed"
_LAST_GENERATION: Final = "SELECT coalesce(max(generation), 0) FROM composition_view WHERE event_id = %s"


class CompositionQueries:
    """Reads `composition_view`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_event(self, event_id: UUID) -> CompositionRow | None:
        row = await self._database.row(_OF_EVENT, (event_id,))
        if row is None:
            return None
        key, shown, version, event, kind, content, state, start, private, client, job, generation, reason, awaits = row
        return CompositionRow(
            id=key,
            version=shown,
            seen=version,
            event_id=event,
            kind=CompositionKind(kind),
            playlist=Playlist.model_validate_json(content),
            state=CompositionState(state),
            live_stream_start=start and start.astimezone(UTC),
            private=private,
            client=client,
            job=job,
            generation=generation,
            reason=reason,
            awaits_sources=awaits,
        )

    async def awaiting(self, events: Collection[UUID]) -> Collection[UUID]:
        """Return the Events whose playlists wait for films of these Events. Few playlists wait at a time."""
        sources = set(events)
        rows = await self._database.rows(_AWAITING)
        waiting = [(event, Playlist.model_validate_json(content)) for event, content in rows]
        return {event for event, playlist in waiting if sources & {event_of(item) for item in playlist.items}}

    async def last_generation(self, event_id: UUID) -> int:
        """Return the last generation of an Event's compositions, including removed ones; 0 if there is none."""
        row = await self._database.row(_LAST_GENERATION, (event_id,))
        return int(row[0]) if row else 0

"""Ports of the handlers of compositions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol
from uuid import UUID

from domain.composition.row import CompositionRow


class CompositionLookup(Protocol):
    """Finds compositions that are not removed."""

    async def of_event(self, event_id: UUID) -> CompositionRow | None: ...

    async def awaiting(self, events: Collection[UUID]) -> Collection[UUID]:
        """Return the Events whose playlists wait for films of these Events."""
        ...

    async def last_generation(self, event_id: UUID) -> int:
        """Return the highest number of a film of this Event, including removed compositions; 0 if there is none."""
        ...


class KnownEvents(Protocol):
    """Tells which Events exist."""

    async def existing(self, keys: Collection[UUID]) -> Collection[UUID]:
        """Return the keys of Events that exist and are not deleted."""
        ...

    async def protected(self, keys: Collection[UUID]) -> Collection[UUID]:
        """Return the keys of Events whose playback on demand uses DRM."""
        ...

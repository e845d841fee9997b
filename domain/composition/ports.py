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
        """The Events whose playlists wait for films of these."""
        ...

    async def last_generation(self, event_id: UUID) -> int:
        """The highest number of a film of this Event, also of removed compositions; 0 without one."""
        ...


class KnownEvents(Protocol):
    """Tells which Events there are."""

    async def known(self, keys: Collection[UUID]) -> Collection[UUID]:
        """Those of them that exist and are not deleted."""
        ...

    async def protected(self, keys: Collection[UUID]) -> Collection[UUID]:
        """Those of them whose playback on demand uses DRM."""
        ...

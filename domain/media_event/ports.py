"""Ports of the Event handlers."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from domain.media_event.row import EventRow


class OnAirLookup(Protocol):
    """Finds the Event that is on the air on a channel."""

    async def on_air(self, channel_id: UUID) -> EventRow | None: ...


class EventLookup(Protocol):
    """Finds Events that are not deleted."""

    async def by_id(self, key: UUID) -> EventRow | None: ...

    async def by_reference(self, reference_id: str) -> EventRow | None:
        """The newest Event with this reference id."""
        ...

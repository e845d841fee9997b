"""Ports of the Event handlers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol
from uuid import UUID

from domain.media_event.row import EventRow
from domain.media_event.values import EventDetails


class OnAirLookup(Protocol):
    """Finds the Event that is on the air on a channel."""

    async def on_air(self, channel_id: UUID) -> EventRow | None: ...


class EventLookup(Protocol):
    """Finds Events that are not deleted."""

    async def by_id(self, key: UUID) -> EventRow | None: ...

    async def by_reference(self, reference_id: str) -> EventRow | None:
        """Return the newest Event with this reference id."""
        ...


class EventDetailsLookup(EventLookup, Protocol):
    """Finds single Events, and several at a time."""

    async def details_of(self, keys: Collection[UUID]) -> Mapping[UUID, EventDetails]:
        """Return the details of the Events with these ids that exist and are not deleted."""
        ...

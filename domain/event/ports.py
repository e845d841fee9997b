"""Ports of the Event handlers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from domain.event.aggregate import MediaEvent
from domain.event.values import EventDetails


@dataclass(frozen=True, slots=True)
class EventRow:
    """An Event as a look-up returns it. `id` is also the contentId. `version` and `date_modified` belong to the last change that
    a GET shows."""

    id: UUID
    version: int
    details: EventDetails
    date_created: datetime
    date_modified: datetime

    @classmethod
    def of(cls, event: MediaEvent) -> EventRow:
        return cls(UUID(event.key), event.shown_version, event.details, event.created_on, event.shown_on)


class EventLookup(Protocol):
    """Finds Events that are not deleted."""

    async def by_id(self, key: UUID) -> EventRow | None: ...

    async def by_reference(self, reference_id: str) -> EventRow | None:
        """Return the newest Event with this reference id."""
        ...


class OnAirLookup(EventLookup, Protocol):
    """Finds single Events, and the Event that is on the air on a channel."""

    async def on_air(self, channel_id: UUID) -> EventRow | None: ...


class EventDetailsLookup(EventLookup, Protocol):
    """Finds single Events, and several at a time."""

    async def details_of(self, keys: Collection[UUID]) -> Mapping[UUID, EventDetails]:
        """Return the details of the Events with these ids that exist and are not deleted."""
        ...

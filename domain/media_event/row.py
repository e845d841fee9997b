"""The result of a look-up of an Event."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.media_event.aggregate import MediaEvent
from domain.media_event.values import EventDetails


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

"""Notices of publications for their callbacks: see docs/reference/api/publications.md#callbacks. These are pure functions.

There is a notice of every change of the state, when the target receives a live stream, and when the target has made a publication
public or private.
"""

from __future__ import annotations

from typing import Any, Final

from domain.kernel.clock import iso
from domain.kernel.event import DomainEvent
from domain.publication import events
from domain.publication.aggregate import Publication

_STATES: Final = (events.Processed, events.Started, events.Stopped, events.Recreated, events.Completed, events.Failed)
NOTED: Final = frozenset(event.TOPIC for event in (*_STATES, events.Arrived, events.Published, events.Unpublished))


def notice_of(event: DomainEvent, publication: Publication) -> dict[str, Any]:
    """Return the payload. `publication` is the publication after the event."""
    return {
        "publicationId": publication.key,
        "destinationId": str(publication.destination_id),
        "contentId": publication.content_id,
        "transactionId": str(publication.transaction_id),
        "target": int(publication.target),
        "publicationState": int(publication.state),
        "publicationStateString": publication.state.name,
        "published": publication.published,
        "reason": publication.reason,
        "time": iso(event.timestamp),
        "client": publication.client,
    }

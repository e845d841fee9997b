"""Lets the publications of an Event with an availability window follow it: their targets show and hide what they have of it."""

from __future__ import annotations

from uuid import UUID

from domain.event.aggregate import MediaEvent
from domain.kernel.ports import Invocation, ServiceNotes
from domain.kernel.stream_name import StreamName
from domain.publication.handlers import PublicationHandlers
from projections.consumers.orders import Order
from projections.log.streams import Streams


class AvailabilityFollower:
    """Carries out the orders for Events that the schedule has published or withdrawn, and for those of which a publication was
    completed. The present state of the Event decides what its targets are asked, so that a late order does no harm."""

    def __init__(self, handlers: PublicationHandlers, streams: Streams, *, notes: ServiceNotes) -> None:
        self._handlers = handlers
        self._streams = streams
        self._notes = notes

    async def follow(self, order: Order, invocation: Invocation) -> None:
        """Make the targets show or hide what they have of the Event that the order names."""
        key = UUID(StreamName.read(order.target).key)
        event = await self._streams.load(MediaEvent.stream(key))
        shown = event.details.shown_by_schedule if isinstance(event, MediaEvent) else None
        if shown is not None:
            for fault in await self._handlers.show_with_event(key, published=shown, invocation=invocation):
                await self._notes.warn(fault, subject=str(key))

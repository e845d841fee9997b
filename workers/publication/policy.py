"""The actions that follow from changes of destinations, publications and Events: the handler of the consumer.

The publications of a deleted destination are withdrawn in batches. Remains of an interrupted upload are removed from the target
after its worker has given up. Live publications follow their Event, and their targets are notified of their end. Targets show and
hide what they have of an Event that the schedule publishes and withdraws.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import ClassVar, Final
from uuid import UUID

from domain.event.aggregate import MediaEvent
from domain.event.events import EventDeleted, ForceStopped, StateChanged
from domain.event.values import LIVE, PRIVATE_STATES, PUBLIC_STATES, Trigger
from domain.kernel.clock import Clock
from domain.kernel.errors import Unavailable
from domain.kernel.ports import Invocation
from domain.kernel.stream_name import StreamName
from domain.publication import events
from domain.publication.aggregate import Publication
from domain.publication.handlers import PublicationHandlers
from domain.publication.live_handlers import LivePublicationHandlers
from domain.publication.values import PublicationKind
from domain.record.kinds.destination import Destination
from projections.consumers.orders import NewOrder, Order
from projections.log.reader import LoggedEvent
from projections.log.streams import Streams
from workers.kernel.order_handler import OrderHandler
from workers.publication.live_follower import AVAILABILITY, GOING_LIVE, ON_AIR, is_over

CONSUMER: Final = "syndication"
LONGEST_CLOSING: Final = timedelta(days=1)
"""The time after which a target that cannot be notified of the end of a live stream is given up."""
_DELETED: Final = f"{Destination.KIND}.deleted"
_PUBLICATIONS: Final = (
    events.Withdrawn,
    events.PublicationStarted,
    events.PublicationCompleted,
    events.StartAwaited,
    events.Stopped,
    events.PublicationFailed,
)
_EVENTS: Final = (StateChanged, ForceStopped, EventDeleted)
_TOPICS: Final = frozenset({_DELETED, *(event.TOPIC for event in (*_PUBLICATIONS, *_EVENTS))})


class SyndicationOrders(OrderHandler):
    """Orders for destinations that are deleted, publications that may have left something at their target or begin to be pushed,
    and Events that go on the air or off it. An order with its own name as the target waits for no other order of the same
    aggregate."""

    CONSUMER: ClassVar[str] = CONSUMER
    topics: ClassVar[frozenset[str]] = _TOPICS

    async def prepare(self, records: Sequence[LoggedEvent]) -> Sequence[NewOrder] | None:
        orders = [self._order(record, target=target, body="{}") for record in records if (target := await self._target(record))]
        return orders or None

    async def _target(self, record: LoggedEvent) -> str | None:
        """Return the target of the order; None if no order follows."""
        if record.topic == _DELETED:
            return record.stream
        key = StreamName.read(record.stream).key
        match self._read(record):
            case events.Withdrawn(target_left=False, open=False):
                return None
            case events.StartAwaited(awaited=False):
                return None
            case events.PublicationFailed(job_version=followed) if followed:
                return None  # an upload failed
            case events.PublicationStarted() | events.StartAwaited(awaited=True):
                return f"{ON_AIR}:{key}"
            case events.PublicationCompleted():
                return await self._availability(record.stream)
            case StateChanged(state=state, previous=previous, trigger=Trigger.SCHEDULE) if (
                PUBLIC_STATES.get(previous) is state or PRIVATE_STATES.get(previous) is state
            ):
                return f"{AVAILABILITY}:{key}"
            case StateChanged(state=state, previous=previous):
                if state in LIVE and previous not in LIVE:
                    return f"{GOING_LIVE}:{key}"
                return record.stream if is_over(state) and not is_over(previous) else None
        return record.stream

    async def _availability(self, publication_stream: str) -> str | None:
        """Return the target of an order for the Event of a publication, if the Event has an availability window."""
        publication = await self._streams.load(publication_stream)
        key = publication.content_id if isinstance(publication, Publication) else ""
        event = await self._streams.load(MediaEvent.stream(key))
        shown = event.details.shown_by_schedule if isinstance(event, MediaEvent) else None
        return None if shown is None else f"{AVAILABILITY}:{key}"


class Removals:
    """Carries out the orders about removed publications. `lease` is the time, in seconds, for which the worker of an interrupted
    job may still be uploading."""

    def __init__(
        self, handlers: PublicationHandlers, live: LivePublicationHandlers, streams: Streams, *, clock: Clock, lease: float
    ) -> None:
        self._handlers = handlers
        self._live = live
        self._streams = streams
        self._clock = clock
        self._lease = timedelta(seconds=lease)

    async def of_destination(self, order: Order, invocation: Invocation) -> None:
        while await self._handlers.withdraw_of_destination(UUID(StreamName.read(order.target).key), invocation=invocation):
            pass

    async def of_publication(self, order: Order, invocation: Invocation) -> None:
        """Clear the target of a publication. A live stream is ended at its target before anything of it is removed there."""
        publication = await self._streams.load(order.target)
        if isinstance(publication, Publication) and publication.open:
            late = self._clock() > publication.modified_on + LONGEST_CLOSING
            await self._live.close_target(publication, give_up=late, invocation=invocation)
            publication = await self._streams.load(order.target)
        if not isinstance(publication, Publication) or publication.open or not publication.target_left:
            return
        if publication.kind is PublicationKind.LIVE:
            await self._live.clear_target(publication, invocation=invocation)
        elif self._clock() < publication.modified_on + self._lease:
            raise Unavailable("the upload may not have ended yet")
        else:
            await self._handlers.clear_target(publication, invocation=invocation)

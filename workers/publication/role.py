"""The role `syndication`: removes publications, and lets those of live Events, and of Events with an availability window, follow
their Event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from domain.event.aggregate import MediaEvent
from domain.kernel.clock import Clock
from domain.kernel.mapper import EventMapper
from domain.kernel.ports import Invocation, ServiceNotes
from domain.kernel.stream_name import StreamName
from domain.publication.aggregate import Publication
from domain.publication.handlers import PublicationHandlers
from domain.publication.live_handlers import LivePublicationHandlers
from domain.record.kinds.destination import Destination
from projections.consumers.orders import Order
from projections.log.streams import Streams
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.order_worker import CarryOut
from workers.kernel.settings import StepSettings
from workers.kernel.worker import Worker
from workers.publication.availability import AvailabilityFollower
from workers.publication.live_follower import AVAILABILITY, GOING_LIVE, ON_AIR, LiveFollower
from workers.publication.policy import Removals, SyndicationOrders


class SyndicationCommands:
    """Carries out an order by the kind of the aggregate that it names."""

    def __init__(self, removals: Removals, following: LiveFollower, *, availability: AvailabilityFollower) -> None:
        self._by_kind: Mapping[str, CarryOut] = {
            Destination.KIND: removals.of_destination,
            Publication.KIND: removals.of_publication,
            MediaEvent.KIND: following.end,
            GOING_LIVE: following.begin,
            ON_AIR: following.check,
            AVAILABILITY: availability.follow,
        }

    async def carry_out(self, order: Order, invocation: Invocation) -> None:
        await self._by_kind[StreamName.read(order.target).kind](order, invocation)


def syndication(
    consumers: ConsumerFactory,
    streams: Streams,
    *,
    mapper: EventMapper,
    handlers: PublicationHandlers,
    live: LivePublicationHandlers,
    following: LiveFollower,
    steps: StepSettings,
    notes: ServiceNotes,
    clock: Clock,
) -> Sequence[Worker]:
    removals = Removals(handlers, live, streams, clock=clock, lease=steps.lease)
    availability = AvailabilityFollower(handlers, streams, notes=notes)
    commands = SyndicationCommands(removals, following, availability=availability)
    return consumers.with_orders(partial(SyndicationOrders, streams, mapper=mapper), commands.carry_out)

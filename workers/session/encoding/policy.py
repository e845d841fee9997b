"""The effect of the states of Events on the encoders of channels: the handler of the consumer.

The orders of a channel are carried out in the order of the log, whichever Events they are from. There are none for a stop: the
Event releases its channel in the same append.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final
from uuid import UUID

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.on_air_handlers import ChannelOrder, OnAirHandlers, OrderKind
from domain.event.values import ENCODER_TRIGGERS, LIVE
from domain.kernel.event import DomainEvent
from domain.kernel.ports import Invocation
from domain.kernel.stream_name import StreamName
from domain.record.kinds.channel import Channel
from projections.consumers.orders import NewOrder, Order
from projections.log.reader import LoggedEvent
from workers.kernel.order_handler import OrderHandler


class ChannelOrders:
    """Parses an order and passes it to its use case."""

    def __init__(self, handlers: OnAirHandlers) -> None:
        self._handlers = handlers

    async def carry_out(self, order: Order, invocation: Invocation) -> None:
        channel_id = UUID(StreamName.read(order.target).key)
        await self._handlers.carry_out(channel_id, ChannelOrder.model_validate_json(order.body), invocation=invocation)


CONSUMER: Final = "encoding"
_TOPICS: Final = frozenset({events.StateChanged.TOPIC, events.ForceStopped.TOPIC})


def order_kind(event: DomainEvent) -> OrderKind | None:
    """Return the kind of the order for the channel of an Event; None if the event orders nothing."""
    match event:
        case events.StateChanged(state=state, trigger=trigger) if state in LIVE and trigger in ENCODER_TRIGGERS:
            return OrderKind.TAKE
        case events.ForceStopped():
            return OrderKind.FREE
    return None


class EncodingOrders(OrderHandler):
    """Orders for Events that go on the air, or are forced to stop."""

    CONSUMER: ClassVar[str] = CONSUMER
    topics: ClassVar[frozenset[str]] = _TOPICS | {events.ChannelAssigned.TOPIC}

    async def prepare(self, records: Sequence[LoggedEvent]) -> Sequence[NewOrder] | None:
        relevant = [(record, kind) for record in records if record.topic in _TOPICS and (kind := order_kind(self._read(record)))]
        if not relevant:
            return None
        moved = {record.stream for record in records if record.topic == events.ChannelAssigned.TOPIC}
        settled = await self._streams.as_of({record.stream for record, _ in relevant} - moved, records[-1].position)
        orders = []
        for record, kind in relevant:
            roots = settled if record.stream in settled else await self._streams.as_of({record.stream}, record.position)
            event = roots.get(record.stream)
            if isinstance(event, MediaEvent) and (channel_id := event.details.channel_id) is not None:
                body = ChannelOrder(kind=kind, event_id=event.key, order=record.version).model_dump_json()
                orders.append(self._order(record, target=Channel.stream(channel_id), body=body))
        return orders or None

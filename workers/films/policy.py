"""What the states of Events mean to films: the handler of the consumer. One order for each stop of an Event that was live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final
from uuid import UUID

from domain.kernel.event import DomainEvent
from domain.kernel.ports import Invocation
from domain.kernel.stream_name import StreamName
from domain.media_event import events
from domain.media_event.aggregate import MediaEvent
from domain.media_event.values import ON_AIR, EventState
from projections.effects.orders import NewOrder, Order
from projections.log.reader import LoggedEvent
from workers.films.stop_captures import StopCaptures
from workers.kernel.order_handler import OrderHandler

CONSUMER: Final = "films"
CAPTURE: Final = "capture"
_STOPS: Final = frozenset({events.StateChanged.TOPIC, events.ForceStopped.TOPIC})


def is_stop(event: DomainEvent) -> bool:
    """Whether an Event that was on the air has stopped."""
    match event:
        case events.StateChanged(state=EventState.STOPPED, previous=previous) | events.ForceStopped(previous=previous):
            return previous in ON_AIR
    return False


class FilmOrders(OrderHandler):
    """Stops of Events."""

    CONSUMER: ClassVar[str] = CONSUMER
    kinds: ClassVar[frozenset[str]] = frozenset({MediaEvent.KIND})

    async def prepare(self, records: Sequence[LoggedEvent]) -> Sequence[NewOrder] | None:
        stopped = [record for record in records if record.topic in _STOPS and is_stop(self._read(record))]
        return [self._order(record, target=record.stream, body=CAPTURE) for record in stopped] or None


class FilmCommands:
    """Carries out the orders."""

    def __init__(self, captures: StopCaptures) -> None:
        self._captures = captures

    async def carry_out(self, order: Order, invocation: Invocation) -> None:
        await self._captures.capture(UUID(StreamName.read(order.target).key), invocation=invocation)

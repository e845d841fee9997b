"""The effect of the states of Events on their infrastructure: the handler of the consumer. See ADR 0058.

An Event that enters a state whose rule selects types of resources no longer needs these. The order names the request that was valid
then, so that an order which is carried out late ends nothing that was requested since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final
from uuid import UUID

from pydantic import BaseModel

from domain.event import events
from domain.event.values import EventState
from domain.kernel.ports import Invocation
from domain.kernel.stream_name import StreamName
from domain.provision.aggregate import ProvisionInfo, provision_key
from domain.provision.handlers import ProvisionHandlers
from projections.consumers.orders import NewOrder, Order
from projections.log.reader import LoggedEvent
from workers.kernel.order_handler import OrderHandler

CONSUMER: Final = "provisioning"
_TOPICS: Final = frozenset({events.StateChanged.TOPIC, events.ForceStopped.TOPIC})


class EndingOrder(BaseModel):
    """The types of the resources to release, and the request that asked for them."""

    event_id: UUID
    select: tuple[str, ...]
    request: int


class ProvisioningOrders(OrderHandler):
    """Orders for Events whose state selects resources that they no longer need."""

    CONSUMER: ClassVar[str] = CONSUMER
    topics: ClassVar[frozenset[str]] = _TOPICS

    async def prepare(self, records: Sequence[LoggedEvent]) -> Sequence[NewOrder] | None:
        entered = [(record, self._state(record)) for record in records]
        streams = {_provision_of(record) for record, _ in entered}
        provisions = await self._streams.as_of(streams, records[-1].position) if streams else {}
        orders = []
        for record, state in entered:
            if _provision_of(record) not in provisions:
                continue
            info = (await self._streams.as_of({_provision_of(record)}, record.position)).get(_provision_of(record))
            if isinstance(info, ProvisionInfo) and info.plan is not None and (select := info.plan.selected_in(state.name)):
                order = EndingOrder(event_id=info.event_id, select=tuple(sorted(select)), request=info.request)
                orders.append(self._order(record, target=info.id, body=order.model_dump_json()))
        return orders or None

    def _state(self, record: LoggedEvent) -> EventState:
        event = self._read(record)
        return event.state if isinstance(event, events.StateChanged) else EventState.STOPPED


class EndingOrders:
    """Carries out the orders to release resources."""

    def __init__(self, handlers: ProvisionHandlers) -> None:
        self._handlers = handlers

    async def carry_out(self, order: Order, invocation: Invocation) -> None:
        ending = EndingOrder.model_validate_json(order.body)
        select = frozenset(ending.select)
        await self._handlers.end_selected(ending.event_id, select, request=ending.request, invocation=invocation)


def _provision_of(record: LoggedEvent) -> str:
    return ProvisionInfo.stream(provision_key(UUID(StreamName.read(record.stream).key)))

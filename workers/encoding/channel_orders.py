"""Carries out an order for a channel."""

from __future__ import annotations

from uuid import UUID

from domain.kernel.ports import Invocation
from domain.kernel.stream_name import StreamName
from domain.media_event.on_air_handlers import ChannelOrder, OnAirHandlers
from projections.effects.orders import Order


class ChannelOrders:
    """Parses an order and passes it to its use case."""

    def __init__(self, handlers: OnAirHandlers) -> None:
        self._handlers = handlers

    async def carry_out(self, order: Order, invocation: Invocation) -> None:
        channel_id = UUID(StreamName.read(order.target).key)
        await self._handlers.carry_out(channel_id, ChannelOrder.model_validate_json(order.body), invocation=invocation)

"""Use cases of the channels that Events are on the air on. docs/reference/api/encoding.md."""

from __future__ import annotations

from enum import StrEnum
from typing import Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from domain.channel.playback import channel_configuration
from domain.event.aggregate import MediaEvent
from domain.event.ports import OnAirLookup
from domain.kernel.errors import ClaimTaken
from domain.kernel.ports import Executor, Invocation, ServiceNotes
from domain.record.kinds.channel import Channel
from domain.record.ports import RecordLookup

_TRIES: Final = 3


class OrderKind(StrEnum):
    TAKE = "take"
    FREE = "free"


class ChannelOrder(BaseModel):
    """An order for a channel, with the Event that it comes from and the version of its state change."""

    model_config = ConfigDict(frozen=True)

    kind: OrderKind
    event_id: UUID
    order: int


class OnAirHandlers:
    """Puts Events on the air and takes them off. A repeated order changes nothing."""

    def __init__(self, executor: Executor, records: RecordLookup, *, events: OnAirLookup, notes: ServiceNotes) -> None:
        self._executor = executor
        self._records = records
        self._events = events
        self._notes = notes

    async def carry_out(self, channel_id: UUID, order: ChannelOrder, *, invocation: Invocation) -> None:
        if order.kind is OrderKind.TAKE:
            await self.take_channel(channel_id, order, invocation=invocation)
        else:
            await self.free_channel(channel_id, invocation=invocation)

    async def take_channel(self, channel_id: UUID, order: ChannelOrder, *, invocation: Invocation) -> None:
        """Put an Event on the air. If another Event is on the channel, the log store names it, and the start is not repeated."""
        channel = await self._records.find(Channel, channel_id)
        if channel is None or not channel_configuration(channel.details.configuration_json).encoders:
            return
        for remaining in reversed(range(_TRIES)):
            try:
                await self._executor.execute(
                    MediaEvent.take_channel.on(order.event_id, channel_id, order=order.order), invocation=invocation
                )
            except ClaimTaken:
                holder = await self._events.on_air(channel_id)
                if holder is None and remaining:
                    continue  # it was released meanwhile
                if holder is None:
                    raise
                name = holder.details.title or "without a title"
                message = f"the encoder was not started: the Event {holder.id} ({name}) is on the air on the channel {channel_id}"
                await self._notes.warn(message, subject=str(order.event_id))
            return

    async def free_channel(self, channel_id: UUID, *, invocation: Invocation) -> None:
        """Take the Event that is on the channel off the air. Its state stays as it is."""
        holder = await self._events.on_air(channel_id)
        if holder is not None:
            await self._executor.execute(MediaEvent.release_channel.on(holder.id, channel_id), invocation=invocation)

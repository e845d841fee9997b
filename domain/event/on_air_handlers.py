"""Use cases that put Events on the air on channels, and take them off. docs/reference/api/encoding.md."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from domain.channel.playback import channel_configuration
from domain.event.aggregate import MediaEvent
from domain.event.ports import EventRow, OnAirLookup
from domain.event.values import LIVE, ChannelUse, EventState, Trigger
from domain.kernel.command import Command
from domain.kernel.ports import Executor, Invocation, Outcome, Plan, ServiceNotes
from domain.record.kinds.channel import Channel
from domain.record.ports import RecordLookup


class OnAirHandlers:
    """Starts Events, which take their channels in the same append, and stops Events by force."""

    def __init__(self, executor: Executor, records: RecordLookup, *, events: OnAirLookup, notes: ServiceNotes) -> None:
        self._executor = executor
        self._records = records
        self._events = events
        self._notes = notes

    async def change_state(self, key: UUID, state: EventState, *, invocation: Invocation) -> Outcome[MediaEvent]:
        """Change the state of an Event on behalf of an operator. An Event that goes live takes its channel."""
        if state not in LIVE:
            return await self._executor.execute(
                MediaEvent.change_state.on(key, state, trigger=Trigger.OPERATOR), invocation=invocation
            )
        return await self._start(
            key,
            lambda channel: MediaEvent.change_state.on(key, state, trigger=Trigger.OPERATOR, channel=channel),
            invocation=invocation,
        )

    async def start_on_schedule(
        self, key: UUID, scheduled_start: datetime, *, scheduled_end: datetime | None, invocation: Invocation
    ) -> Outcome[MediaEvent]:
        """Start an Event that is still scheduled for these times (see `MediaEvent.start_on_schedule`)."""
        return await self._start(
            key,
            lambda channel: MediaEvent.start_on_schedule.on(key, scheduled_start, scheduled_end=scheduled_end, channel=channel),
            invocation=invocation,
        )

    async def force_stop(self, key: UUID, *, invocation: Invocation) -> Outcome[MediaEvent]:
        """Stop an Event, and take whichever Event is on the air on its channel off the air in the same append. The state of the
        other Event stays as it is."""

        async def plan() -> Plan:
            event = await self._events.by_id(key)
            channel_id = None if event is None else event.details.channel_id
            holder = None if channel_id is None else await self._events.on_air(channel_id)
            stop = MediaEvent.force_stop.on(key)
            if channel_id is None or holder is None or holder.id == key:
                return Plan((stop,))
            return Plan((MediaEvent.release_channel.on(holder.id, channel_id).as_planned(), stop))

        return await self._executor.execute(plan, invocation=invocation)

    async def _start(
        self, key: UUID, start: Callable[[ChannelUse | None], Command[MediaEvent]], *, invocation: Invocation
    ) -> Outcome[MediaEvent]:
        """Start an Event. If another Event takes the channel first, the append fails and the plan is made again.

        The log store names the Event that has the channel. A start that was refused the channel is not repeated: the Event takes
        it when it is free."""
        holder: EventRow | None = None

        async def plan() -> Plan:
            nonlocal holder
            channel_id = await self._channel_with_encoders(key)
            holder = None if channel_id is None else await self._events.on_air(channel_id)
            if holder is not None and holder.id == key:
                holder = None
            channel = None if channel_id is None else ChannelUse(channel_id, None if holder is None else holder.id)
            return Plan((start(channel),))

        outcome: Outcome[MediaEvent] = await self._executor.execute(plan, invocation=invocation)
        if holder is not None and outcome.position is not None and outcome.aggregate.details.awaited_channel_id is not None:
            name = holder.details.title or "without a title"
            message = (
                f"the encoder was not started: the Event {holder.id} ({name}) is on the air on the channel"
                f" {outcome.aggregate.details.awaited_channel_id}; it starts when the channel is free"
            )
            await self._notes.warn(message, subject=outcome.aggregate.key)
        return outcome

    async def _channel_with_encoders(self, key: UUID) -> UUID | None:
        event = await self._events.by_id(key)
        if event is None or event.details.channel_id is None:
            return None
        channel = await self._records.find(Channel, event.details.channel_id)
        if channel is None or not channel_configuration(channel.details.configuration_json).encoders:
            return None
        return event.details.channel_id

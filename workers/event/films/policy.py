"""The changes of Events that lead to a film: the handler of the consumer. There is an order for each stop of an Event that was
live, and for each playlist that waits for the film of an Event which has changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ClassVar, Final
from uuid import UUID

from domain.channel.playback import PlaybackFlow, flow_configuration
from domain.composition.aggregate import Composition
from domain.composition.events import SourcesAwaited
from domain.composition.handlers import CompositionHandlers
from domain.composition.ports import CompositionLookup
from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.ports import EventLookup
from domain.event.values import ON_AIR, STREAMING, EventDetails, EventState, VodWorkflow
from domain.job.handlers import JobHandlers, NewJob
from domain.kernel.clock import iso
from domain.kernel.errors import Conflict, DomainError, Malformed
from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from domain.kernel.ports import Executor, Invocation, ServiceNotes
from domain.kernel.stream_name import StreamName
from domain.record.kinds.flow import Flow
from domain.record.ports import RecordLookup
from projections.consumers.orders import NewOrder, Order
from projections.log.reader import LoggedEvent
from projections.log.streams import Streams
from workers.kernel.order_handler import OrderHandler

# Recorded streams and captures of Events that have stopped, which `instantVod` and `captureOnStop` of a flow request. See
# docs/reference/api/flows.md.

_CLIENT: Final = "system"


class StopCaptures:
    """Follows a stop as the flow of the Event requests: shows the recorded stream, and submits its capture once. The end of the
    captured time identifies the stop."""

    def __init__(
        self, events: EventLookup, records: RecordLookup, *, executor: Executor, jobs: JobHandlers, notes: ServiceNotes
    ) -> None:
        self._executor = executor
        self._events = events
        self._records = records
        self._jobs = jobs
        self._notes = notes

    async def capture(self, event_id: UUID, *, invocation: Invocation) -> None:
        """Show the recorded stream of the Event and capture it after its last stop, if its flow requests that. An Event that is
        live again is captured at its next stop."""
        flow = await self._flow_of_stopped(event_id)
        if flow is not None and flow.instant_vod:  # first: a capture leaves the state INSTANT_VOD as it is
            await self._executor.execute(MediaEvent.show_recording.on(event_id), invocation=invocation)
        if flow is None or not flow.capture_on_stop:
            return
        job = NewJob(client=_CLIENT, workflow=VodWorkflow.CAPTURE.value, parameters={"content_id": str(event_id)})
        try:
            await self._jobs.submit_job(job, invocation=invocation)
        except DomainError as refusal:
            if isinstance(refusal, Conflict) and await self._flow_of_stopped(event_id) is None:
                return  # another process has submitted it
            message = f"the flow asks for a capture of the Event when it stops, and there is none: {_reason(refusal)}"
            await self._notes.warn(message, subject=str(event_id))

    async def _flow_of_stopped(self, event_id: UUID) -> PlaybackFlow | None:
        """Return the flow of an Event that has stopped and was not captured up to its end."""
        event = await self._events.by_id(event_id)
        flow_id = event.details.flow_id if event is not None and _is_open(event.details) else None
        flow = None if flow_id is None else await self._records.find(Flow, flow_id)
        return None if flow is None else flow_configuration(flow.details.configuration_json)


def _is_open(details: EventDetails) -> bool:
    """Return True if the Event has stopped and was not captured up to its end."""
    end = details.actual_live_end
    return end is not None and details.state not in STREAMING and not _same(details.capture_vod_end, end)


def _same(first: datetime | None, second: datetime) -> bool:
    """Compare times with the precision of job parameters."""
    return first is not None and iso(first) == iso(second)


def _reason(refusal: DomainError) -> str:
    if not isinstance(refusal, Malformed):
        return str(refusal)
    return "; ".join(error.message.removeprefix("is required: ") for error in refusal.errors)


CONSUMER: Final = "films"
CAPTURE: Final = "capture"
COMPOSE: Final = "compose"
_STOPS: Final = frozenset({events.StateChanged.TOPIC, events.ForceStopped.TOPIC})
_CHANGES: Final = _STOPS | {events.Mp4StateChanged.TOPIC, events.VodJobEnded.TOPIC, events.EventDeleted.TOPIC}
"""The topics after which an Event may have its film, or will get none."""


def is_stop(event: DomainEvent) -> bool:
    """Return True if an Event that was on the air has stopped."""
    match event:
        case events.StateChanged(state=EventState.STOPPED, previous=previous) | events.ForceStopped(previous=previous):
            return previous in ON_AIR
    return False


class FilmOrders(OrderHandler):
    """Orders for stops of Events, and for changes of Events whose films playlists wait for."""

    CONSUMER: ClassVar[str] = CONSUMER
    topics: ClassVar[frozenset[str]] = _CHANGES | {SourcesAwaited.TOPIC}

    def __init__(self, streams: Streams, compositions: CompositionLookup, *, mapper: EventMapper, wake: Callable[[], None]) -> None:
        super().__init__(streams, mapper=mapper, wake=wake)
        self._compositions = compositions

    async def prepare(self, records: Sequence[LoggedEvent]) -> Sequence[NewOrder] | None:
        stopped = [record for record in records if record.topic in _STOPS and is_stop(self._read(record))]
        captures = [self._order(record, target=record.stream, body=CAPTURE) for record in stopped]
        return [*captures, *await self._waiting(records)] or None

    async def _waiting(self, records: Sequence[LoggedEvent]) -> Sequence[NewOrder]:
        """Return the orders for waiting playlists. A playlist that begins to wait is checked once more: its source may have arrived
        before the log recorded the wait. A playlist that waits when an Event changes is found in the view, which is never behind
        the log."""
        changed = {UUID(record.key): record for record in records if record.topic in _CHANGES}
        began = {record.stream: record for record in records if record.topic == SourcesAwaited.TOPIC}
        waiting = dict.fromkeys(await self._compositions.awaiting(changed.keys()), records[-1]) if changed else {}
        if began:
            roots = await self._streams.as_of(began.keys(), records[-1].position)
            waiting |= {root.event_id: began[stream] for stream, root in roots.items() if isinstance(root, Composition)}
        return [self._order(record, target=MediaEvent.stream(event), body=COMPOSE) for event, record in waiting.items()]


class FilmCommands:
    """Carries out the orders for films."""

    def __init__(self, captures: StopCaptures, compositions: CompositionHandlers) -> None:
        self._captures = captures
        self._compositions = compositions

    async def carry_out(self, order: Order, invocation: Invocation) -> None:
        event = UUID(StreamName.read(order.target).key)
        if order.body == CAPTURE:
            await self._captures.capture(event, invocation=invocation)
        else:
            await self._compositions.follow_sources(event, invocation=invocation)

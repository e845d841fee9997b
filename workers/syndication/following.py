"""Live publications follow their Event: those that wait start with it if it says so, and those that are pushed end with it."""

from __future__ import annotations

import asyncio
from typing import Final
from uuid import UUID

from domain.kernel.errors import DomainError, NotFound, Unavailable
from domain.kernel.ports import Executor, Invocation, ServiceNotes
from domain.kernel.stream_name import StreamName
from domain.media_event.aggregate import MediaEvent
from domain.media_event.values import LIVE, EventState
from domain.publication.aggregate import Publication
from domain.publication.commands import RecordArrival
from domain.publication.live_handlers import Entry, LivePublicationHandlers
from domain.publication.row import PublicationRow
from domain.publication.values import PublicationState
from projections.effects.orders import Order
from projections.log.streams import Streams
from workers.syndication.live_targets import OpenedLiveTargets
from workers.target_ports import TargetFailed

GOING_LIVE: Final = "going_live"
ON_AIR: Final = "on_air"
"""Names of orders: start what waits with an Event, and see whether the Event of a started publication is still on the air."""
OVER: Final = "the Event has ended"
_GOING_ON: Final = LIVE | {EventState.SUSPENDED, EventState.LIVE_STARTING, EventState.LIVE_STOPPING}
_AT_ONCE: Final = 25


def is_over(state: EventState) -> bool:
    """Whether nothing of an Event in this state is pushed any more."""
    return state not in _GOING_ON


class EventFollowing:
    """Carries out the orders about Events. Each decides by what the Event is now."""

    def __init__(
        self,
        executor: Executor,
        handlers: LivePublicationHandlers,
        streams: Streams,
        *,
        targets: OpenedLiveTargets,
        notes: ServiceNotes,
    ) -> None:
        self._executor = executor
        self._targets = targets
        self._handlers = handlers
        self._streams = streams
        self._notes = notes

    async def end(self, order: Order, invocation: Invocation) -> None:
        """Of an Event that was stopped or deleted."""
        await self._end(UUID(StreamName.read(order.target).key), invocation)

    async def begin(self, order: Order, invocation: Invocation) -> None:
        """Start the publications of an Event that went on the air: those that were started ahead of it, and with
        `autoStartPublications` all that wait. What cannot be reached is tried again as long as the Event is on the air."""
        key = UUID(StreamName.read(order.target).key)
        event = await self._event(key)
        if event is None or event.details.state not in LIVE:
            return
        awaited = not event.details.auto_start_publications
        seats = asyncio.Semaphore(_AT_ONCE)

        async def start(entry: Entry) -> str:
            async with seats:
                return await self._start(key, entry, invocation=invocation)

        left = await asyncio.gather(*map(start, await self._handlers.scheduled(key, awaited=awaited)))
        if any(left):
            raise Unavailable(next(filter(None, left)))

    async def check(self, order: Order, invocation: Invocation) -> None:
        """Look at the Event of a publication that was started, since it may have ended at the same moment, or gone live where the
        publication waits for that. What a streaming server pushes is shown by its target from here."""
        publication = await self._streams.load(Publication.stream(StreamName.read(order.target).key))
        if isinstance(publication, Publication) and publication.start_awaited and not publication.withdrawn:
            await self._start_now(publication, invocation)
            return
        if isinstance(publication, Publication) and publication.state is PublicationState.InProgress:
            await self._end(UUID(publication.content_id), invocation)
            await self._show(publication, invocation)

    async def _start_now(self, publication: Publication, invocation: Invocation) -> None:
        key = UUID(publication.content_id)
        event = await self._event(key)
        if event is not None and event.details.state in LIVE:
            entry = Entry(UUID(publication.key), publication.destination_id)
            if left := await self._start(key, entry, invocation=invocation):
                raise Unavailable(left)

    async def _show(self, publication: Publication, invocation: Invocation) -> None:
        row = PublicationRow.of(publication)
        if row.served_by is None or row.arrived:
            return
        try:
            details = await self._targets.show(row, row.details or {})
        except TargetFailed as failure:
            if failure.kind == "retry":
                raise Unavailable(f"the target of the publication: {failure}") from None
            details = row.details or {}
        arrival = RecordArrival(row.id, run=row.run, details=dict(details))
        await self._executor.execute(arrival, invocation=invocation)

    async def _start(self, event: UUID, entry: Entry, *, invocation: Invocation) -> str:
        """Why it is to be tried again; empty where it is not."""
        try:
            await self._handlers.start(event, entry, invocation=invocation, ahead=False)
        except Unavailable as down:
            return str(down)
        except NotFound:
            return ""  # it was deleted meanwhile
        except DomainError as refusal:
            message = f"the live publication {entry.publication_id} was not started with its Event: {refusal}"
            await self._notes.warn(message, subject=str(event))
        return ""

    async def _end(self, key: UUID, invocation: Invocation) -> None:
        event = await self._event(key)
        if event is None or event.details.date_deleted is not None or is_over(event.details.state):
            while await self._handlers.stop_running(key, reason=OVER, invocation=invocation):
                pass

    async def _event(self, key: UUID) -> MediaEvent | None:
        found = await self._streams.load(MediaEvent.stream(key))
        return found if isinstance(found, MediaEvent) else None

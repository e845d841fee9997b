"""Keeps live publications in step with their Event: those that wait start with it if it says so, and those that are pushed end with
it."""

from __future__ import annotations

import asyncio
from typing import Final
from uuid import UUID

from domain.event.aggregate import MediaEvent
from domain.event.values import LIVE, EventState
from domain.kernel.errors import DomainError, NotFound, Unavailable
from domain.kernel.ports import Executor, Invocation, ServiceNotes
from domain.kernel.stream_name import StreamName
from domain.publication.aggregate import Publication
from domain.publication.live_handlers import LivePublicationHandlers, RequestedLive
from domain.publication.row import PublicationRow
from domain.publication.values import PublicationState
from projections.consumers.orders import Order
from projections.log.streams import Streams
from workers.ports.live import LiveIngest, live_face
from workers.ports.targets import Details, TargetFailed
from workers.publication.contents import TargetContents

SECONDS: Final = 20.0
_LATE: Final = f"The target did not answer within {SECONDS:g} seconds."


class OpenedLiveTargets:
    """The targets of live publications: implements `workers.session.pushes.LiveTargets`. A destination is opened again for each
    call, so that a corrected password applies at once."""

    def __init__(self, contents: TargetContents) -> None:
        self._contents = contents

    async def ingest(self, publication: PublicationRow) -> LiveIngest:
        try:
            async with asyncio.timeout(SECONDS), self._contents.opened(publication) as (target, order):
                return await live_face(target).open_live(order, publication.details)
        except TimeoutError:
            raise TargetFailed("retry", _LATE) from None

    async def show(self, publication: PublicationRow, details: Details) -> Details:
        try:
            async with asyncio.timeout(SECONDS), self._contents.opened(publication) as (target, order):
                return await live_face(target).go_live(order, details)
        except TimeoutError:
            raise TargetFailed("retry", _LATE) from None


GOING_LIVE: Final = "going_live"
ON_AIR: Final = "on_air"
AVAILABILITY: Final = "availability"
"""The names of the orders: start the publications that wait for an Event; check if the Event of a started publication is still on
the air; show or hide what targets have of an Event with an availability window."""
OVER: Final = "the Event has ended"
_CONTINUING: Final = LIVE | {EventState.SUSPENDED, EventState.LIVE_STARTING, EventState.LIVE_STOPPING}
_AT_ONCE: Final = 25


def is_over(state: EventState) -> bool:
    """Return True if nothing of an Event in this state is pushed any more."""
    return state not in _CONTINUING


class LiveFollower:
    """Starts and ends the live publications of Events by orders. The current state of the Event decides what an order does."""

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
        """End the live publications of an Event that was stopped or deleted."""
        await self._end(UUID(StreamName.read(order.target).key), invocation)

    async def begin(self, order: Order, invocation: Invocation) -> None:
        """Start the publications of an Event that went on the air: those that were started ahead of it, and with
        `autoStartPublications` all that wait. A target that cannot be reached is retried as long as the Event is on the air."""
        key = UUID(StreamName.read(order.target).key)
        event = await self._event(key)
        if event is None or event.details.state not in LIVE:
            return
        awaited = not event.details.auto_start_publications
        seats = asyncio.Semaphore(_AT_ONCE)

        async def start(entry: RequestedLive) -> str:
            async with seats:
                return await self._start(key, entry, invocation=invocation)

        reasons = await asyncio.gather(*map(start, await self._handlers.scheduled(key, awaited=awaited)))
        if any(reasons):
            raise Unavailable(next(filter(None, reasons)))

    async def check(self, order: Order, invocation: Invocation) -> None:
        """Check the Event of a started publication, since it may have ended at the same moment, or gone live if the publication
        waits for that. If a streaming server pushes the publication, this makes its target show it."""
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
            entry = RequestedLive(UUID(publication.key), publication.destination_id)
            if reason := await self._start(key, entry, invocation=invocation):
                raise Unavailable(reason)

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
        arrival = Publication.arrive.on(row.id, row.run, details=dict(details))
        await self._executor.execute(arrival, invocation=invocation)

    async def _start(self, event: UUID, entry: RequestedLive, *, invocation: Invocation) -> str:
        """Start a publication. Return the reason to retry; empty if it is not to be retried."""
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
        event = await self._streams.load(MediaEvent.stream(key))
        return event if isinstance(event, MediaEvent) else None

"""The changes of Events that lead to a film: the handler of the consumer. There is an order for each stop of an Event that was
live, and for each playlist that waits for the film of an Event which has changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final
from uuid import UUID

from domain.composition.aggregate import Composition
from domain.composition.events import SourcesAwaited
from domain.composition.handlers import CompositionHandlers
from domain.composition.ports import CompositionLookup
from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from domain.kernel.ports import Invocation
from domain.kernel.stream_name import StreamName
from domain.media_event import events
from domain.media_event.aggregate import MediaEvent
from domain.media_event.values import ON_AIR, EventState
from projections.effects.orders import NewOrder, Order
from projections.log.reader import LoggedEvent
from projections.log.streams import Streams
from workers.films.stop_captures import StopCaptures
from workers.kernel.order_handler import OrderHandler

CONSUMER: Final = "films"
CAPTURE: Final = "capture"
COMPOSE: Final = "compose"
_STOPS: Final = frozenset({events.StateChanged.TOPIC, events.ForceStopped.TOPIC})
_CHANGES: Final = _STOPS | {events.Mp4StateChanged.TOPIC, events.VodJobEnded.TOPIC, events.Deleted.TOPIC}
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
    kinds: ClassVar[frozenset[str]] = frozenset({MediaEvent.KIND, Composition.KIND})

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

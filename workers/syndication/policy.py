"""What is left to do after a destination or a publication is gone: the handler of the consumer.

The publications of a deleted destination are withdrawn in batches. What an upload that was broken off may have brought to its
target is removed after its worker has given up."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.kernel.clock import Clock
from domain.kernel.errors import Unavailable
from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from domain.kernel.ports import Invocation
from domain.kernel.stream_name import StreamName
from domain.publication.aggregate import Publication
from domain.publication.events import Withdrawn
from domain.publication.handlers import PublicationHandlers
from domain.records.kinds.destination import Destination
from projections.effects.orders import NewOrder, Order, insert
from projections.log.reader import LoggedEvent
from projections.log.streams import Streams

CONSUMER: Final = "syndication"
_DELETED: Final = f"{Destination.KIND}.deleted"
_TOPICS: Final = frozenset({_DELETED, Withdrawn.TOPIC})


class SyndicationOrders:
    """`wake` wakes the worker of this process that carries them out."""

    kinds: Final = frozenset({Destination.KIND, Publication.KIND})

    def __init__(self, *, mapper: EventMapper, wake: Callable[[], None]) -> None:
        self._mapper = mapper
        self._wake = wake

    async def begin(self, position: int) -> None:
        """Nothing is kept in memory."""

    async def prepare(self, records: Sequence[LoggedEvent]) -> Sequence[NewOrder] | None:
        left = [record for record in records if record.topic in _TOPICS and self._leaves_something(record)]
        return [
            NewOrder(record.position, record.stream, "{}", record.event_id, json.loads(record.metadata).get("correlation_id") or "")
            for record in left
        ] or None

    async def write(self, connection: AsyncConnection[TupleRow], effects: Sequence[NewOrder]) -> None:
        await insert(connection, effects, consumer=CONSUMER)

    def wrote(self, effects: Sequence[NewOrder]) -> None:
        self._wake()

    def _leaves_something(self, record: LoggedEvent) -> bool:
        event: DomainEvent = self._mapper.read(record.topic, stream=record.stream, version=record.version, state=record.state)
        return event.target_left if isinstance(event, Withdrawn) else True


class Removals:
    """Carries the orders out. `lease`: so long after a job was broken off its worker may still be uploading."""

    def __init__(self, handlers: PublicationHandlers, streams: Streams, *, clock: Clock, lease: float) -> None:
        self._handlers = handlers
        self._streams = streams
        self._clock = clock
        self._lease = timedelta(seconds=lease)

    async def carry_out(self, order: Order, invocation: Invocation) -> None:
        name = StreamName.read(order.target)
        if name.kind == Destination.KIND:
            while await self._handlers.withdraw_of_destination(UUID(name.key), invocation=invocation):
                pass
            return
        publication = await self._streams.load(order.target)
        if isinstance(publication, Publication) and publication.target_left:
            if self._clock() < publication.modified_on + self._lease:
                raise Unavailable("the upload may not have ended yet")
            await self._handlers.clear_target(publication, invocation=invocation)

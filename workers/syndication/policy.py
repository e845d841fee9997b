"""What is left to do after a destination or a publication is gone: the handler of the consumer.

The publications of a deleted destination are withdrawn in batches. What an upload that was broken off may have brought to its
target is removed after its worker has given up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import ClassVar, Final
from uuid import UUID

from domain.kernel.clock import Clock
from domain.kernel.errors import Unavailable
from domain.kernel.ports import Invocation
from domain.kernel.stream_name import StreamName
from domain.publication.aggregate import Publication
from domain.publication.events import Withdrawn
from domain.publication.handlers import PublicationHandlers
from domain.records.kinds.destination import Destination
from projections.effects.orders import NewOrder, Order
from projections.log.reader import LoggedEvent
from projections.log.streams import Streams
from workers.kernel.order_handler import OrderHandler

CONSUMER: Final = "syndication"
_DELETED: Final = f"{Destination.KIND}.deleted"
_TOPICS: Final = frozenset({_DELETED, Withdrawn.TOPIC})


class SyndicationOrders(OrderHandler):
    """Destinations that are deleted, and publications that may have left something at their target."""

    CONSUMER: ClassVar[str] = CONSUMER
    kinds: ClassVar[frozenset[str]] = frozenset({Destination.KIND, Publication.KIND})

    async def prepare(self, records: Sequence[LoggedEvent]) -> Sequence[NewOrder] | None:
        left = [record for record in records if record.topic in _TOPICS and self._leaves_something(record)]
        return [self._order(record, target=record.stream, body="{}") for record in left] or None

    def _leaves_something(self, record: LoggedEvent) -> bool:
        event = self._read(record)
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

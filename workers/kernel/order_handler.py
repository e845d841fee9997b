"""The base of handlers of consumers whose effects are orders."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import ClassVar

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from projections.consumers.orders import NewOrder, insert
from projections.log.reader import LoggedEvent
from projections.log.streams import Streams


class OrderHandler:
    """The base of a handler that writes orders. A subclass defines in `prepare` the orders for a page of the log. `wake` wakes the
    worker of this process that carries them out."""

    CONSUMER: ClassVar[str]
    topics: ClassVar[frozenset[str]]

    def __init__(self, streams: Streams, *, mapper: EventMapper, wake: Callable[[], None]) -> None:
        self._streams = streams
        self._mapper = mapper
        self._wake = wake

    async def begin(self, position: int) -> None:
        """Do nothing: no state is in memory."""

    async def write(self, connection: AsyncConnection[TupleRow], effects: Sequence[NewOrder]) -> None:
        await insert(connection, effects, consumer=self.CONSUMER)

    def wrote(self, effects: Sequence[NewOrder]) -> None:
        self._wake()

    def _read(self, record: LoggedEvent) -> DomainEvent:
        return record.decoded(self._mapper)

    @staticmethod
    def _order(record: LoggedEvent, *, target: str, body: str) -> NewOrder:
        """Return an order with the correlation of the event that causes it."""
        correlation = json.loads(record.metadata).get("correlation_id") or ""
        return NewOrder(record.position, target, body, record.event_id, correlation)

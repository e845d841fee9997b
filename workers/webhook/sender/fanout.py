"""The base of the fan-outs from the event log to deliveries: of notifications and of callbacks.

A fan-out has a memory as of one position of the log. Records from before that position come from a replay; they are handled with
another memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from domain.kernel.redaction import records_redaction
from projections.log.reader import LoggedEvent
from projections.webhook.fanout import NewDelivery, insert
from projections.webhook.keys import DeliverySource


class Memory(Protocol):
    """The state of a fan-out as of one position."""

    position: int


M = TypeVar("M", bound=Memory)


@dataclass(frozen=True, slots=True)
class Effects:
    """Deliveries to insert. `late` is True if the source has already inserted later positions."""

    deliveries: Sequence[NewDelivery]
    late: bool


Wake = Callable[[Collection[UUID]], None]


class SenderWakeup:
    """Names to the sender of this process the webhooks with new deliveries, so that it need not look for them. It is made before
    the sender; `connect` is called when there is one. In a process without a sender it does nothing."""

    def __init__(self) -> None:
        self._wake: Wake | None = None

    def connect(self, wake: Wake) -> None:
        self._wake = wake

    def __call__(self, webhooks: Collection[UUID]) -> None:
        if self._wake is not None:
            self._wake(webhooks)


class DeliveryFanout(Generic[M]):
    """A consumer's handler that inserts the deliveries of one source. `wake` notifies the sender of this process."""

    source: ClassVar[DeliverySource]

    def __init__(self, memory: M, *, mapper: EventMapper, wake: Wake) -> None:
        self._memory = memory
        self._mapper = mapper
        self._wake = wake

    async def begin(self, position: int) -> None:
        self._memory = await self._as_of(position)

    async def prepare(self, records: Sequence[LoggedEvent]) -> Effects | None:
        start = records[0].position - 1
        late = start < self._memory.position
        memory = await self._as_of(start) if late else self._memory
        memory.position = records[-1].position
        for record in records:
            if records_redaction(record.topic):
                self._forget(memory, record)
        deliveries = await self._deliveries(memory, records, start=start)
        if late and self._outdates(records):
            await self.begin(self._memory.position)
        return Effects(deliveries, late) if deliveries else None

    async def write(self, connection: AsyncConnection[TupleRow], effects: Effects) -> None:
        await insert(connection, effects.deliveries, source=self.source, late=effects.late)

    def wrote(self, effects: Effects) -> None:
        self._wake({delivery.webhook for delivery in effects.deliveries})

    async def _as_of(self, position: int) -> M:
        """Return the memory as it was at a position."""
        raise NotImplementedError(type(self).__name__)

    async def _deliveries(self, memory: M, records: Sequence[LoggedEvent], *, start: int) -> list[NewDelivery]:
        """Return the deliveries for these records, which are whole writes in log order, and update the memory. `start` is the
        position before the first record."""
        raise NotImplementedError(type(self).__name__)

    def _forget(self, memory: M, record: LoggedEvent) -> None:
        """Forget an aggregate that lost content: it is folded from the log again."""
        raise NotImplementedError(type(self).__name__)

    def _outdates(self, records: Sequence[LoggedEvent]) -> bool:
        """Return True if late records change what must be in the memory."""
        return False

    def _read(self, record: LoggedEvent) -> DomainEvent:
        return record.decoded(self._mapper)
